import type { Json, JsonObject } from './documents.js';

/**
 * The order of all values, in sorts, in ranges and in the bytes of an index:
 *
 *   missing < null < false < true < numbers < strings < arrays < objects
 *
 * Strings are compared by code point, which is the order of their UTF-8 bytes. Arrays are compared
 * element by element; a prefix sorts first. Objects are compared as arrays of their
 * `[name, value]` pairs, sorted by name, so the order in which fields were written does not
 * matter. -0 is 0.
 */
export const ranks = {
  missing: 0,
  null: 1,
  boolean: 2,
  number: 3,
  string: 4,
  array: 5,
  object: 6,
} as const;

export function rankOf(value: Json | undefined): number {
  if (typeof value === 'number') return ranks.number;
  if (typeof value === 'string') return ranks.string;
  if (typeof value === 'boolean') return ranks.boolean;
  if (value === undefined) return ranks.missing;
  if (value === null) return ranks.null;
  return Array.isArray(value) ? ranks.array : ranks.object;
}

/** Negative, 0 or positive, as for `Array.sort`; `undefined` is a missing field. */
export function compareValues(a: Json | undefined, b: Json | undefined): number {
  if (a === b) return 0;
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b);
  const rank = rankOf(a);
  const difference = rank - rankOf(b);
  if (difference !== 0) return difference;
  if (rank === ranks.boolean) return a ? 1 : -1;
  if (rank === ranks.array) return compareArrays(a as Json[], b as Json[]);
  return compareObjects(a as JsonObject, b as JsonObject);
}

function compareArrays(a: Json[], b: Json[]): number {
  const common = Math.min(a.length, b.length);
  for (let i = 0; i < common; i++) {
    const order = compareValues(a[i], b[i]);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function compareObjects(a: JsonObject, b: JsonObject): number {
  const ours = sortedNames(a);
  const theirs = sortedNames(b);
  const common = Math.min(ours.length, theirs.length);
  for (let i = 0; i < common; i++) {
    const order = compareText(ours[i]!, theirs[i]!) || compareValues(a[ours[i]!], b[theirs[i]!]);
    if (order !== 0) return order;
  }
  return ours.length - theirs.length;
}

/** The names of an object's fields in code point order. */
export function sortedNames(object: JsonObject): string[] {
  return Object.keys(object).sort(compareText);
}

const firstSurrogate = 0xd800;
const lastSurrogate = 0xdfff;

/**
 * By code point. JavaScript's `<` compares UTF-16 units and puts U+1F600 (which starts with a
 * surrogate, 0xD83D) before U+FFFD.
 */
export function compareText(a: string, b: string): number {
  const common = Math.min(a.length, b.length);
  for (let i = 0; i < common; i++) {
    const ours = a.charCodeAt(i);
    const theirs = b.charCodeAt(i);
    if (ours !== theirs) return byCodePoint(ours) - byCodePoint(theirs);
  }
  return a.length - b.length;
}

/** Moves surrogates, which encode the highest code points, above all other units. */
function byCodePoint(unit: number): number {
  return unit >= firstSurrogate && unit <= lastSurrogate ? unit + 0x10000 : unit;
}

/** True when `<` and `>` compare the text by code point with any other text. */
export function ordersByUnit(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) >= firstSurrogate) return false;
  }
  return true;
}

/** Same type and value; the order of an object's fields does not matter. */
export function equalValues(a: Json, b: Json): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, i) => equalValues(item, b[i]!));
  }
  if (Array.isArray(b)) return false;
  const names = Object.keys(a);
  if (names.length !== Object.keys(b).length) return false;
  return names.every((name) => Object.hasOwn(b, name) && equalValues(a[name]!, b[name]!));
}
