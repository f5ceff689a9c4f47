import type { z } from 'zod';
import { hasUserinfo, isSecretName } from '../base/secrecy.js';
import { expectation } from './expectation.js';
import { suggestion } from './nearest.js';
import {
  coreOf,
  defOf,
  formOf,
  memberOf,
  notesOf,
  schemaAt,
  shapeOf,
  type Schema,
} from './schema.js';

/** One mistake in a config. */
export interface Problem {
  path: readonly PropertyKey[];
  /** The message, with the name by which the value was set. */
  say(name: string): string;
  /** The value is absent, so there is no line to point to. */
  missing?: true;
}

type Issue = z.core.$ZodIssue;

/** What was given to zod. */
export interface Checked {
  schema: Schema;
  value: unknown;
  /** Shows no value at all. */
  secret?: boolean;
}

/** Converts zod issues to messages. */
export function problemsOf(issues: readonly Issue[], checked: Checked): Problem[] {
  return issues.flatMap((issue) => problemOf(issue, checked, issue.path));
}

function problemOf(
  issue: Issue,
  checked: Checked,
  path: readonly PropertyKey[],
): Problem | Problem[] {
  const wanted = schemaAt(checked.schema, path, checked.value);
  const given = path.reduce(memberOf, checked.value);
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => unknownKey(path, key, wanted && formOf(wanted, given)));
  }
  if (issue.code === 'custom') {
    return { path, say: (name) => sentence(name, issue.message) };
  }
  if (issue.code === 'invalid_union') {
    const closest = closestOption(issue);
    if (closest) {
      return closest.flatMap((inner) => problemOf(inner, checked, [...path, ...inner.path]));
    }
  }
  if (issue.code === 'too_small' && Array.isArray(given) && given.length === 0) {
    return { path, say: (name) => `${name} must not be empty` };
  }
  const expected = expectedBy(issue, checked.schema, path, wanted);
  if (given === undefined) {
    return { path, say: (name) => `${name} is missing; it must be ${expected}`, missing: true };
  }
  const shown = show(given, checked.secret || isSecret(path, checked.schema));
  return { path, say: (name) => `${name} must be ${expected}, not ${shown}` };
}

function expectedBy(
  issue: Issue,
  schema: Schema,
  path: readonly PropertyKey[],
  wanted: Schema | undefined,
): string {
  if (wanted) return expectation(wanted);
  if (issue.code === 'invalid_value') return issue.values.map(String).join(' or ');
  // The discriminator of a union: its schema depends on its own value.
  const parent = schemaAt(schema, path.slice(0, -1));
  const def = parent && defOf(coreOf(parent));
  if (def?.type === 'union') {
    const members = def.options.map((option) => schemaAt(option, path.slice(-1)));
    const texts = members.filter((member) => member !== undefined).map(expectation);
    if (texts.length > 0) return [...new Set(texts)].join(' or ');
  }
  return issue.message.replace(/^Invalid input: expected /, '').toLowerCase();
}

// The alternative of the right type with the fewest issues.
function closestOption(issue: z.core.$ZodIssueInvalidUnion): readonly Issue[] | undefined {
  return issue.errors
    .filter((issues) => issues.every((inner) => inner.path.length > 0))
    .toSorted((a, b) => a.length - b.length)[0];
}

export function unknownKey(
  path: readonly PropertyKey[],
  key: string,
  schema: Schema | undefined,
): Problem {
  const known = Object.keys((schema && shapeOf(schema)) ?? {});
  return {
    path: [...path, key],
    say: (name) => `unknown key "${name}"${suggestion(key, known)}`,
  };
}

/** Keys that are not in the schema, at any depth. Zod drops them silently. */
export function unknownKeys(
  schema: Schema,
  value: unknown,
  path: readonly PropertyKey[] = [],
): Problem[] {
  const form = formOf(schema, value);
  if (Array.isArray(value)) {
    return value.flatMap((item, index) => {
      const inner = schemaAt(form, [index]);
      return inner ? unknownKeys(inner, item, [...path, index]) : [];
    });
  }
  if (typeof value !== 'object' || value === null) return [];
  if (!['object', 'record'].includes(defOf(coreOf(form)).type)) return [];
  return Object.entries(value).flatMap(([key, member]) => {
    const inner = schemaAt(form, [key]);
    return inner ? unknownKeys(inner, member, [...path, key]) : [unknownKey(path, key, form)];
  });
}

/** `grants[0].role` */
export function pathText(path: readonly PropertyKey[]): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else text += text === '' ? String(step) : `.${String(step)}`;
  }
  return text || 'the document';
}

// Our own checks say "must be ...", "is ..." or "has ..."; other messages are sentences.
function sentence(name: string, message: string): string {
  return /^(must|is|has|needs|cannot) /.test(message)
    ? `${name} ${message}`
    : `${name}: ${message}`;
}

const maxShownChars = 60;

function show(value: unknown, secret: boolean): string {
  if (value === null) return 'empty';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a map';
  const isHidden = secret || (typeof value === 'string' && hasUserinfo(value));
  if (isHidden) return `this ${typeof value === 'string' ? 'text' : typeof value}`;
  // JSON cannot represent Infinity and NaN.
  const text = typeof value === 'number' ? String(value) : JSON.stringify(value);
  return text.length > maxShownChars ? `${text.slice(0, maxShownChars)}..."` : text;
}

/** True when the value at `path` must not be shown. */
export function isSecret(path: readonly PropertyKey[], schema: Schema): boolean {
  return path.some((step, index) => {
    const here = schemaAt(schema, path.slice(0, index + 1));
    const declared = here && notesOf(here).secret;
    return declared ?? (typeof step === 'string' && isSecretName(step));
  });
}
