import {
  coreOf,
  defOf,
  notesOf,
  type Schema,
  formOf,
  memberOf,
  schemaAt,
  shapeOf,
} from './schema.js';
import type { z } from 'zod';
import { hasUserinfo, isSecretName } from '../base/log.js';
import { suggestion } from './nearest.js';

/** The expected value, to follow "must be": "a whole number of at least 1". */
export function expectation(schema: Schema): string {
  const { expected } = notesOf(schema);
  if (expected !== undefined) return expected;
  const core = coreOf(schema);
  const def = defOf(core);
  if (def.type === 'number') return expectedNumber(core);
  if (def.type === 'string') return expectedText(core);
  if (def.type === 'enum') return oneOf(Object.values(def.entries));
  if (def.type === 'literal') return oneOf(def.values);
  if (def.type === 'array') return `a list${expectedLength(core, ['item', 'items'])}`;
  if (def.type === 'union') return [...new Set(def.options.map(expectation))].join(' or ');
  return others[def.type] ?? 'something else';
}

const others: Readonly<Record<string, string>> = {
  boolean: 'true or false',
  bigint: 'a whole number',
  object: 'a map',
  record: 'a map',
  tuple: 'a list',
  null: 'nothing',
};

interface CheckDef {
  check: string;
  value?: number;
  inclusive?: boolean;
  format?: string;
  minimum?: number;
  maximum?: number;
  length?: number;
  pattern?: RegExp;
  prefix?: string;
}

// A format such as z.int() or z.url() is a check in the schema itself.
function checksOf(schema: Schema): CheckDef[] {
  const def = defOf(schema);
  const own = 'check' in def ? [def as unknown as CheckDef] : [];
  const added = (def.checks ?? []).map(({ _zod: internals }) => internals.def);
  return [...own, ...(added as unknown as CheckDef[])];
}

function expectedNumber(schema: Schema): string {
  let kind = 'a number';
  let low: CheckDef | undefined;
  let high: CheckDef | undefined;
  let step = '';
  for (const check of checksOf(schema)) {
    if (check.check === 'number_format' && check.format !== 'float64') kind = 'a whole number';
    if (check.check === 'greater_than' && (!low || check.value! > low.value!)) low = check;
    if (check.check === 'less_than' && (!high || check.value! < high.value!)) high = check;
    if (check.check === 'multiple_of') step = ` that ${check.value} divides`;
  }
  return `${kind}${bounds(low, high)}${step}`;
}

function bounds(low: CheckDef | undefined, high: CheckDef | undefined): string {
  if (low?.inclusive && high?.inclusive) return ` from ${low.value} to ${high.value}`;
  const texts = [
    low && (low.inclusive ? `of at least ${low.value}` : `above ${low.value}`),
    high && (high.inclusive ? `of at most ${high.value}` : `below ${high.value}`),
  ].filter((text) => text !== undefined);
  return texts.length > 0 ? ` ${texts.join(' and ')}` : '';
}

const formats: Readonly<Record<string, string>> = {
  url: 'a URL',
  email: 'an e-mail address',
  datetime: 'an RFC 3339 time such as 2030-01-31T08:00:00Z',
  date: 'a date such as 2030-01-31',
  uuid: 'a UUID',
  ulid: 'a ULID',
  ipv4: 'an IPv4 address',
  ipv6: 'an IPv6 address',
  cidrv4: 'a network such as 10.0.0.0/8',
  cidrv6: 'a network such as fd00::/8',
  base64: 'base64',
};

function expectedText(schema: Schema): string {
  for (const check of checksOf(schema)) {
    if (check.check !== 'string_format') continue;
    const known = formats[check.format ?? ''];
    if (known) return known;
    if (check.format === 'starts_with') return `text that starts with "${check.prefix}"`;
    if (check.pattern) return `text that matches ${check.pattern.source}`;
  }
  return `text${expectedLength(schema, ['character', 'characters'])}`;
}

function expectedLength(schema: Schema, [one, many]: readonly [string, string]): string {
  let low = 0;
  let high = Infinity;
  for (const check of checksOf(schema)) {
    if (check.check === 'min_length') low = Math.max(low, check.minimum!);
    if (check.check === 'max_length') high = Math.min(high, check.maximum!);
    if (check.check === 'length_equals') low = high = check.length!;
  }
  const units = (count: number) => `${count} ${count === 1 ? one : many}`;
  if (low === high) return ` of ${units(low)}`;
  if (low === 1 && high === Infinity) return ' that is not empty';
  if (high === Infinity) return low > 0 ? ` of at least ${units(low)}` : '';
  return low > 0 ? ` of ${low} to ${units(high)}` : ` of at most ${units(high)}`;
}

function oneOf(values: readonly unknown[]): string {
  const texts = values.map((value) => (value === '' ? '""' : String(value)));
  if (texts.length === 1) return texts[0]!;
  return `one of ${texts.slice(0, -1).join(', ')} or ${texts.at(-1)}`;
}

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
interface Checked {
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

function unknownKey(
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
