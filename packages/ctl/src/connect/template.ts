import { UsageError } from '@millrace/kit/errors';
import { suggestion } from '@millrace/kit/nearest';

/** A JSON value. */
export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

/** What a payload can be made of. */
export interface ChangeFields {
  readonly op: string;
  readonly collection: string;
  readonly id: string;
  readonly key: string;
  readonly rev: number;
  readonly seq: number;
  readonly committed_at: string;
  /** The document before the change; null for an insert. */
  readonly before: Json;
  /** The document after the change; null for a delete. */
  readonly after: Json;
}

const names = [
  'op',
  'collection',
  'id',
  'key',
  'rev',
  'seq',
  'committed_at',
  'before',
  'after',
] as const satisfies readonly (keyof ChangeFields)[];

const placeholder = /\{\{\s*([^{}]*?)\s*\}\}/g;

/** Throws a UsageError for a placeholder that names no field of a change. */
export function checkTemplate(template: Json): void {
  for (const text of textsOf(template)) {
    for (const [whole, path = ''] of text.matchAll(placeholder)) {
      const [first = ''] = path.split('.');
      if (names.includes(first as keyof ChangeFields)) continue;
      const hint = suggestion(first, names) || `. Use one of ${names.join(', ')}.`;
      throw new UsageError(`has the unknown placeholder ${whole}${hint}`);
    }
  }
}

/** Whether the template needs the document before the change. */
export function usesBefore(template: Json): boolean {
  return textsOf(template).some((text) => /\{\{\s*before[.\s}]/.test(text));
}

/**
 * The template with its placeholders replaced. A text that is only a placeholder becomes the value
 * itself; inside a longer text the value is inserted as text. A path that is not there is null.
 */
export function fillTemplate(template: Json, change: ChangeFields): Json {
  if (typeof template === 'string') return fillText(template, change);
  if (Array.isArray(template)) return template.map((item) => fillTemplate(item, change));
  if (typeof template !== 'object' || template === null) return template;
  const entries = Object.entries(template);
  return Object.fromEntries(entries.map(([name, value]) => [name, fillTemplate(value, change)]));
}

function fillText(text: string, change: ChangeFields): Json {
  const [whole, path] = /^\{\{\s*([^{}]*?)\s*\}\}$/.exec(text) ?? [];
  if (whole !== undefined) return valueAt(change, path!);
  return text.replaceAll(placeholder, (_, inner: string) => {
    const value = valueAt(change, inner);
    if (value === null) return '';
    return typeof value === 'string' ? value : JSON.stringify(value);
  });
}

function valueAt(change: ChangeFields, path: string): Json {
  let value: unknown = change;
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return null;
    value = (value as Record<string, unknown>)[name];
  }
  return value as Json;
}

function textsOf(template: Json): string[] {
  if (typeof template === 'string') return [template];
  if (typeof template !== 'object' || template === null) return [];
  return Object.values(template).flatMap(textsOf);
}
