import { jsonForm, maxDepth, type Json, type JsonObject, refuse } from './documents.js';
import { sortedNames, rankOf } from './order.js';
import { suggestion } from '@millrace/kit/nearest';
import { parsePath, type Path } from './path.js';
import { compileRegex } from './regex.js';
import { isUlid } from '@millrace/kit/ulid';
import { filterOps, plainFilter, testsElement, type FilterOp } from './plain-query.js';

export type { Filter } from './plain-query.js';

const pattern =
  /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(\.\d+)?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/;

/** An RFC 3339 time in milliseconds, with fractions of them; `undefined` if it is invalid. */
export function parseTime(text: string): number | undefined {
  const match = pattern.exec(text);
  if (!match) return undefined;
  const part = (group: number) => Number(match[group] ?? 0);
  const [year, month, day] = [part(1), part(2), part(3)];
  const [hour, minute, second] = [part(4), part(5), part(6)];
  // A leap second counts as the first one of the next minute, as in POSIX time.
  if (month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 60) {
    return undefined;
  }
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCDate() !== day) return undefined;
  const [offsetHour, offsetMinute] = [part(9), part(10)];
  if (offsetHour > 23 || offsetMinute > 59) return undefined;
  const offset = (offsetHour * 60 + offsetMinute) * (match[8] === '-' ? -1 : 1);
  return date.getTime() + (hour * 60 + minute - offset) * 60_000 + second * 1000 + part(7) * 1000;
}

/** RFC 3339 with milliseconds, in UTC: sorts by time as text. */
export function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

const loneSurrogate = /\p{Surrogate}/u;

/** Validates a value from outside as JSON; `fail` makes the error. */
export function checkJson(value: unknown, fail: (problem: string) => Error, depth = 1): Json {
  if (typeof value === 'boolean' || value === null) return value;
  if (typeof value === 'number') {
    if (Number.isFinite(value)) return value;
    throw fail(`has a number that JSON does not have: ${value}`);
  }
  if (typeof value === 'string') {
    // The order of such text would be undefined, too.
    if (!loneSurrogate.test(value)) return value;
    throw fail('has text with a lone surrogate, which is not Unicode');
  }
  if (typeof value !== 'object') throw fail(`has ${describe(value)}, which JSON does not have`);
  if (depth > maxDepth) throw fail(`is nested deeper than ${maxDepth} levels`);
  if (value instanceof Date && Number.isNaN(value.getTime())) throw fail('has an invalid Date');
  const form = jsonForm(value);
  if (form !== undefined) return checkJson(form, fail, depth + 1);
  if (Array.isArray(value)) {
    return value.map((item: unknown) => checkJson(item, fail, depth + 1));
  }
  const object: JsonObject = {};
  for (const [name, member] of Object.entries(value)) {
    if (name === '__proto__') throw fail('has a field named "__proto__"');
    if (member !== undefined) object[name] = checkJson(member, fail, depth + 1);
  }
  return object;
}

/** The type of a value, for an error text. */
export function describe(value: unknown): string {
  if (value === null) return 'null';
  if (value === undefined) return 'nothing';
  if (value === '') return 'an empty string';
  if (Array.isArray(value))
    return value.length === 0 ? 'an empty list' : `a list of ${value.length}`;
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return `a ${typeof value}`;
}

/** A problem as a sentence: a question has its mark already. */
export function sentence(text: string): string {
  return text.endsWith('?') ? text : `${text}.`;
}

/** JSON with the fields of each object in order: equal values have equal texts. */
export function canonicalText(value: Json): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(',')}]`;
  const fields = sortedNames(value).map(
    (name) => `${JSON.stringify(name)}:${canonicalText(value[name]!)}`,
  );
  return `{${fields.join(',')}}`;
}

/** A validated filter. Times are in milliseconds. */
export type Condition<Field extends FilterField = Path> =
  | { readonly kind: 'all' }
  | { readonly kind: 'and' | 'or'; readonly parts: readonly Condition<Field>[] }
  | { readonly kind: 'not'; readonly part: Condition<Field> }
  | FieldTest<Field>;

export interface FieldTest<Field extends FilterField = Path> {
  readonly kind: 'test';
  readonly field: Field;
  readonly op: FilterOp;
  /**
   * For `exists` always a boolean, for `in`, `nin`, `all` and `between` always a list, for
   * `elemMatch` the condition as it was given.
   */
  readonly value: Json;
}

export interface FilterField {
  readonly text: string;
  readonly isTime: boolean;
}

const maxFilterDepth = 32;
const maxFilterNodes = 1000;
const maxListedValues = 10_000;

const members = ['field', 'op', 'value', 'and', 'or', 'not'] as const;

function bad(place: string, problem: string): Error {
  return refuse('BAD_FILTER', sentence(`${place} ${problem}`));
}

/** Validates a filter on records. `undefined` and `{}` match all. */
export function parseFilter(input: unknown, place = 'filter'): Condition {
  return parseCondition(input, place, (name, at) =>
    parsePath(name, (problem) => bad(at, `${problem}: "${name}"`)),
  );
}

/** Validates a filter whose fields `fieldOf` resolves. */
export function parseCondition<Field extends FilterField>(
  input: unknown,
  place: string,
  fieldOf: (name: string, place: string) => Field,
): Condition<Field> {
  let nodes = 0;

  const node = (value: unknown, at: string, depth: number): Condition<Field> => {
    if (depth > maxFilterDepth) throw bad(at, `is nested deeper than ${maxFilterDepth} levels`);
    if (++nodes > maxFilterNodes) {
      throw bad(place, `has more than ${maxFilterNodes} conditions`);
    }
    const filter = checkMembers(value, at);
    const parts: Condition<Field>[] = [];
    if (isLeaf(filter)) parts.push(leaf(filter, at));
    if (filter.and !== undefined) parts.push(...list(filter.and, `${at}.and`, depth));
    if (filter.or !== undefined) {
      const branches = list(filter.or, `${at}.or`, depth);
      // In JSON it could mean "none of these", and the wire format cannot distinguish it from no
      // "or".
      if (branches.length === 0) throw bad(`${at}.or`, 'is empty: leave it out to match all');
      parts.push(branches.length === 1 ? branches[0]! : { kind: 'or', parts: branches });
    }
    if (filter.not !== undefined) {
      parts.push({ kind: 'not', part: node(filter.not, `${at}.not`, depth + 1) });
    }
    return joinAll(parts);
  };

  const list = (value: unknown, at: string, depth: number): Condition<Field>[] => {
    if (!Array.isArray(value)) {
      throw bad(at, `must be a list of conditions, not ${describe(value)}`);
    }
    return value.map((item: unknown, i) => node(item, `${at}[${i}]`, depth + 1));
  };

  const leaf = (filter: FilterMembers, at: string): FieldTest<Field> => {
    if (typeof filter.field !== 'string') {
      throw bad(`${at}.field`, `must be the path of a field, not ${describe(filter.field)}`);
    }
    const field = fieldOf(filter.field, `${at}.field`);
    const op = checkOp(filter.op, `${at}.op`);
    return { kind: 'test', field, op, value: checkOperand(op, filter.value, field, `${at}.value`) };
  };

  return input === undefined ? { kind: 'all' } : node(input, place, 1);
}

type FilterMembers = { [name in (typeof members)[number]]?: unknown };

function checkMembers(value: unknown, at: string): FilterMembers {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw bad(at, `must be an object such as {"field", "op", "value"}, not ${describe(value)}`);
  }
  for (const name of Object.keys(value)) {
    if (!(members as readonly string[]).includes(name)) {
      const hint =
        suggestion(name, members) ||
        `; a condition is {"field": "${name}", "op": "eq", "value": ...}`;
      throw bad(at, `has an unknown member "${name}"${hint}`);
    }
  }
  return value;
}

function isLeaf(filter: FilterMembers): boolean {
  return filter.field !== undefined || filter.op !== undefined || filter.value !== undefined;
}

function joinAll<Field extends FilterField>(parts: Condition<Field>[]): Condition<Field> {
  const flat = parts.flatMap((part) => (part.kind === 'and' ? part.parts : part));
  const real = flat.filter((part) => part.kind !== 'all');
  if (real.length === 0) return { kind: 'all' };
  return real.length === 1 ? real[0]! : { kind: 'and', parts: real };
}

function checkOp(op: unknown, at: string): FilterOp {
  if ((filterOps as readonly unknown[]).includes(op)) return op as FilterOp;
  const known = `one of ${filterOps.join(', ')}`;
  if (typeof op !== 'string') throw bad(at, `must be ${known}, not ${describe(op)}`);
  throw bad(at, `"${op}" is unknown; it must be ${known}${suggestion(op, filterOps)}`);
}

function checkOperand(op: FilterOp, value: unknown, field: FilterField, at: string): Json {
  const toValue = field.isTime ? timeOperand(op, field.text) : plainOperand;
  switch (op) {
    case 'exists':
      if (value === undefined) return true;
      if (typeof value === 'boolean') return value;
      throw bad(at, `must be true or false for exists, not ${describe(value)}`);
    case 'elemMatch': {
      const condition = plainOperand(value, at);
      elementConditions(condition, at);
      return condition;
    }
    case 'size':
      if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
      throw bad(at, `must be a whole number from 0 on for size, not ${describe(value)}`);
    case 'type':
      if (isTypeName(value)) return value;
      throw bad(at, `must be one of ${typeNames.join(', ')} for type, not ${shown(value)}`);
    case 'all':
    case 'in':
    case 'nin': {
      if (!Array.isArray(value)) throw bad(at, `must be a list for ${op}, not ${describe(value)}`);
      if (value.length > maxListedValues) {
        throw bad(at, `has ${value.length} values, at most ${maxListedValues} are possible`);
      }
      if (op === 'all' && value.length === 0) throw bad(at, 'is empty: all needs a value');
      return value.map((item: unknown, i) => toValue(item, `${at}[${i}]`));
    }
    case 'between': {
      if (!Array.isArray(value) || value.length !== 2) {
        throw bad(at, `must be [low, high] for between, not ${describe(value)}`);
      }
      const [low, high] = value.map((item: unknown, i) => toValue(item, `${at}[${i}]`));
      if (rankOf(low) === rankOf(high)) return [low!, high!];
      throw bad(at, `must be two values of one type, not ${describe(low)} and ${describe(high)}`);
    }
    case 'eqi':
    case 'startsWithi':
    case 'prefix':
    case 'regex': {
      if (field.isTime) throw notForTimes(op, field.text, at);
      const text = plainOperand(value, at);
      if (typeof text !== 'string') {
        throw bad(at, `must be a string for ${op}, not ${describe(value)}`);
      }
      if (op === 'regex') compileRegex(text, (problem) => bad(at, problem));
      return text;
    }
    case 'contains':
      if (field.isTime) throw notForTimes(op, field.text, at);
      return plainOperand(value, at);
    case 'eq':
    case 'ne':
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte':
      return toValue(value, at);
  }
}

/** The names of `type`, by the rank of a value. */
export const typeNames = ['null', 'boolean', 'number', 'text', 'array', 'object'] as const;

function isTypeName(value: unknown): value is string {
  return (typeNames as readonly unknown[]).includes(value);
}

/** Text without its case: lower case of NFC. */
export function foldText(text: string): string {
  return text.normalize('NFC').toLowerCase();
}

/** The end of a beginning, where a text that goes on may have the other sigma. */
export const lastSigma = /[σς]$/;

export interface ElementConditions {
  /** On the field `e` of a document that holds the element. */
  readonly element: Condition | undefined;
  /** On the fields of an element that is an object. */
  readonly fields: Condition | undefined;
}

/** The condition of `elemMatch` or `$pull`, for elements that are objects and for others. */
export function elementConditions(input: Json, place: string): ElementConditions {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw bad(place, `must be a condition on elements, not ${describe(input)}`);
  }
  const parse = (filter: object) => parseFilter(plainFilter(filter, place), place);
  if (testsElement(input, true)) return { element: parse({ e: input }), fields: undefined };
  const isTest =
    testsElement(input, false) && (input['type'] === undefined || isTypeName(input['type']));
  return { element: isTest ? parse({ e: input }) : undefined, fields: parse(input) };
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : describe(value);
}

function plainOperand(value: unknown, at: string): Json {
  if (value === undefined) throw bad(at, 'is missing');
  return checkJson(value, (problem) => bad(at, problem));
}

function timeOperand(op: FilterOp, name: string): (value: unknown, at: string) => number {
  return (value, at) => {
    if (value instanceof Date && !Number.isNaN(value.getTime())) return value.getTime();
    const time = typeof value === 'string' ? parseTime(value) : undefined;
    if (time !== undefined) return time;
    throw bad(
      at,
      `must be an RFC 3339 time such as "2030-01-31T12:00:00Z" for ${op} on ${name}, not ${shown(value)}`,
    );
  };
}

function notForTimes(op: FilterOp, name: string, at: string): Error {
  return bad(at, `cannot be used with ${op}: ${name} is a time, use between, gte or lt`);
}

/** The condition as plain data: the same for equal filters with the same order of parts. */
export function conditionText<Field extends FilterField>(condition: Condition<Field>): Json {
  switch (condition.kind) {
    case 'all':
      return [];
    case 'and':
    case 'or':
      return [condition.kind, ...condition.parts.map((part) => conditionText(part))];
    case 'not':
      return ['not', conditionText(condition.part)];
    case 'test':
      return [condition.field.text, condition.op, condition.value];
  }
}

const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const highest = '7' + 'Z'.repeat(25);

/** True for an id in the stored form of record ids. */
export function isStoredId(text: string): boolean {
  return isUlid(text) && text === text.toUpperCase();
}

/** The id right before it; `undefined` before the first. */
export function idBefore(id: string): string | undefined {
  return step(id, '0', 'Z', -1);
}

/** The id right after it; `undefined` after the last. */
export function idBehind(id: string): string | undefined {
  return id === highest ? undefined : step(id, 'Z', '0', 1);
}

function step(id: string, full: string, empty: string, by: 1 | -1): string | undefined {
  let at = id.length - 1;
  while (at >= 0 && id[at] === full) at--;
  if (at < 0) return undefined;
  const digit = alphabet[alphabet.indexOf(id[at]!) + by]!;
  return id.slice(0, at) + digit + empty.repeat(id.length - 1 - at);
}
