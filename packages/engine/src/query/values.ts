import { maxDepth, type Json, type JsonObject } from '../value/documents.js';
import { sortedNames } from '../value/order.js';

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
