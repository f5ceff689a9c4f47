import type { Json, JsonObject } from './documents.js';
import { suggestion } from '@millrace/kit/nearest';
import { compareValues } from './order.js';

/** The parts of a record that queries read; a `RecordImage` decodes each one on demand. */
export interface Row {
  readonly id: string;
  readonly key: string;
  readonly rev: number;
  readonly seq: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly expiresAt: number;
  readonly data: JsonObject;
  top(field: string): Json | undefined;
  isText?(field: string, text: string, utf8: Uint8Array): boolean;
}

/**
 * A dotted path into a record's data, or one of its own fields (`$id`, ...).
 *
 * In an array a name applies to each element, so one path may reach several values, and a number
 * selects that element. The value of a path that ends at an array is the array itself. In an object
 * a number is a name like any other.
 */
export interface Path {
  readonly text: string;
  /** Empty for the record's own fields. */
  readonly segments: readonly Segment[];
  /** Reads one of the record's own fields; times are in milliseconds. */
  readonly own?: ((row: Row) => Json | undefined) | undefined;
  /** Its values are times: milliseconds internally, RFC 3339 in the API. */
  readonly isTime: boolean;
}

interface Segment {
  readonly name: string;
  /** Index of an array element, -1 for a name. */
  readonly index: number;
  /** Every object inherits a member of this name, so only an own one counts. */
  readonly inherited: boolean;
}

const maxPathLength = 1024;

interface OwnField {
  read: (row: Row) => Json | undefined;
  isTime?: boolean;
}

const ownFields: Readonly<Record<string, OwnField>> = {
  $id: { read: (row) => row.id },
  $key: { read: (row) => row.key },
  $rev: { read: (row) => row.rev },
  $seq: { read: (row) => row.seq },
  $created_at: { read: (row) => row.createdAt, isTime: true },
  $updated_at: { read: (row) => row.updatedAt, isTime: true },
  $expires_at: { read: (row) => row.expiresAt || undefined, isTime: true },
};

/** Parses a path; `fail` makes the error. */
export function parsePath(text: string, fail: (problem: string) => Error): Path {
  if (text === '') throw fail('is empty');
  if (text.length > maxPathLength) throw fail(`has more than ${maxPathLength} characters`);
  if (text.startsWith('$')) {
    const own = Object.hasOwn(ownFields, text) ? ownFields[text] : undefined;
    if (own) return { text, segments: [], own: own.read, isTime: own.isTime ?? false };
    const known = Object.keys(ownFields);
    throw fail(`is not one of ${known.join(', ')}${suggestion(text, known)}`);
  }
  const names = text.split('.');
  if (names.includes('')) throw fail('has an empty part between its dots');
  return { text, segments: names.map(toSegment), isTime: false };
}

function toSegment(name: string): Segment {
  const index = /^(0|[1-9]\d*)$/.test(name) ? Number(name) : -1;
  return { name, index, inherited: name in Object.prototype };
}

function memberOf(object: JsonObject, segment: Segment): Json | undefined {
  if (segment.inherited && !Object.hasOwn(object, segment.name)) return undefined;
  return object[segment.name];
}

/**
 * Calls `visit` with each value that the path reaches from `value`, until it returns true. Returns
 * whether it did.
 */
function visitFrom(
  start: Json,
  segments: readonly Segment[],
  from: number,
  visit: (value: Json) => boolean,
): boolean {
  let value = start;
  for (let at = from; at < segments.length; at++) {
    if (typeof value !== 'object' || value === null) return false;
    const segment = segments[at]!;
    let next: Json | undefined;
    if (!Array.isArray(value)) next = memberOf(value, segment);
    else if (segment.index >= 0) next = value[segment.index];
    else {
      for (const element of value) if (visitFrom(element, segments, at, visit)) return true;
      return false;
    }
    if (next === undefined) return false;
    value = next;
  }
  return visit(value);
}

/** Tests whether any value that the path reaches passes. A missing one never does. */
export function anyValue(path: Path, test: (value: Json) => boolean): (row: Row) => boolean {
  const { segments, own } = path;
  if (own) {
    return (row) => {
      const value = own(row);
      return value !== undefined && test(value);
    };
  }
  const { name } = segments[0]!;
  if (segments.length === 1) {
    return (row) => {
      const value = row.top(name);
      return value !== undefined && test(value);
    };
  }
  return (row) => {
    const value = row.top(name);
    return value !== undefined && visitFrom(value, segments, 1, test);
  };
}

/** As `anyValue` for one text: a top-level field is compared in place. */
export function anyText(path: Path, text: string): (row: Row) => boolean {
  const [first, second] = path.segments;
  if (!first || second) return anyValue(path, (found) => found === text);
  const { name } = first;
  const utf8 = Buffer.from(text);
  return (row) => row.isText?.(name, text, utf8) ?? row.top(name) === text;
}

/** Calls `visit` with every value that the path reaches in the record. */
export function forEachValue(path: Path, row: Row, visit: (value: Json) => void): void {
  if (path.own) {
    const value = path.own(row);
    if (value !== undefined) visit(value);
    return;
  }
  const first = row.top(path.segments[0]!.name);
  if (first === undefined) return;
  visitFrom(first, path.segments, 1, (value) => {
    visit(value);
    return false;
  });
}

/** The path leads through an array, so it may have any number of values. */
export const severalValues = Symbol('several values');

/** The single value of the path, `undefined` when it is missing. */
export function plainValue(path: Path): (row: Row) => Json | undefined | typeof severalValues {
  const { segments, own } = path;
  if (own) return own;
  const { name } = segments[0]!;
  if (segments.length === 1) return (row) => row.top(name);
  const rest = segments.slice(1);
  return (row) => {
    let value = row.top(name);
    if (value === undefined) return undefined;
    for (const segment of rest) {
      if (typeof value !== 'object' || value === null) return undefined;
      let next: Json | undefined;
      if (!Array.isArray(value)) next = memberOf(value, segment);
      else if (segment.index >= 0) next = value[segment.index];
      else return severalValues;
      if (next === undefined) return undefined;
      value = next;
    }
    return value;
  };
}

/** The sort value: of several values the smallest, or the largest in a descending sort. */
export function sortValue(path: Path, descending: boolean): (row: Row) => Json | undefined {
  const plain = plainValue(path);
  return (row) => {
    const value = plain(row);
    if (value !== severalValues) return value;
    let best: Json | undefined;
    forEachValue(path, row, (candidate) => {
      if (best === undefined) best = candidate;
      else if (compareValues(candidate, best) < 0 !== descending) best = candidate;
    });
    return best;
  };
}

/** The group value: the value, or through an array the list of all values. */
export function listedValue(path: Path): (row: Row) => Json | undefined {
  const plain = plainValue(path);
  return (row) => {
    const value = plain(row);
    if (value !== severalValues) return value;
    const all: Json[] = [];
    forEachValue(path, row, (found) => all.push(found));
    return all.length > 0 ? all : undefined;
  };
}
