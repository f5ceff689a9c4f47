import type { Json } from '../value/documents.js';
import { describe, parseTime } from '../value/filter.js';
import { compareValues, rankOf } from '../value/order.js';
import type { Path, Row } from '../value/path.js';
import { bad, listOf, membersOf, pathOf } from './query.js';

/** The start of an hour, day, week, month or year in a time zone, from a time. */
interface DateTrunc {
  field: string;
  unit: DateUnit;
  /** IANA name. Default: UTC. */
  zone?: string | undefined;
}

/** The lower edge of the interval that a value is in: `[a, b)`. Outside of all it is null. */
interface Bucket {
  field: string;
  /** At least two numbers or texts that rise. */
  edges: readonly (number | string)[];
}

/** A value to group by that is computed from a field; `as` is its name in the result. */
export type GroupExpression =
  | { dateTrunc: DateTrunc; as?: string | undefined; bucket?: undefined }
  | { bucket: Bucket; as?: string | undefined; dateTrunc?: undefined };

export interface CheckedGroup {
  /** Its name in the result. */
  readonly name: string;
  readonly path: Path;
  /** From the value of the path; undefined: the value itself. */
  readonly compute?: ((value: Json | undefined) => Json) | undefined;
}

const units = ['hour', 'day', 'week', 'month', 'year'] as const;
type DateUnit = (typeof units)[number];

const maxEdges = 1_000;
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

export function checkGroup(input: unknown, place: string): CheckedGroup {
  if (typeof input !== 'object' || input === null) {
    const path = pathOf(input, place);
    return { name: path.text, path };
  }
  const { dateTrunc, bucket, as } = membersOf(input, place, ['dateTrunc', 'bucket', 'as']);
  if ((dateTrunc === undefined) === (bucket === undefined)) {
    throw bad(place, 'must be a path, or an object with either dateTrunc or bucket');
  }
  const group =
    dateTrunc === undefined
      ? checkBucket(bucket, `${place}.bucket`)
      : checkTrunc(dateTrunc, `${place}.dateTrunc`);
  if (as !== undefined && (typeof as !== 'string' || as === '' || as === '__proto__')) {
    throw bad(`${place}.as`, `must be the name of the value, not ${describe(as)}`);
  }
  return { ...group, name: as ?? group.path.text };
}

function checkBucket(input: unknown, place: string): Omit<CheckedGroup, 'name'> {
  const { field, edges: given } = membersOf(input, place, ['field', 'edges']);
  const path = pathOf(field, `${place}.field`);
  const edges = listOf(given, `${place}.edges`, maxEdges) as Json[];
  const isRising = edges.every(
    (edge, i) =>
      (typeof edge === 'number' || typeof edge === 'string') &&
      (i === 0 || (rankOf(edge) === rankOf(edges[0]) && compareValues(edges[i - 1], edge) < 0)),
  );
  if (edges.length < 2 || !isRising) {
    throw bad(`${place}.edges`, 'must be at least two numbers, or texts, that rise');
  }
  const compute = (value: Json | undefined): Json => {
    if (rankOf(value) !== rankOf(edges[0])) return null;
    const above = edges.findIndex((edge) => compareValues(value, edge) < 0);
    return above <= 0 ? null : edges[above - 1]!;
  };
  return { path, compute };
}

function checkTrunc(input: unknown, place: string): Omit<CheckedGroup, 'name'> {
  const { field, unit, zone = 'UTC' } = membersOf(input, place, ['field', 'unit', 'zone']);
  const path = pathOf(field, `${place}.field`);
  if (!(units as readonly unknown[]).includes(unit)) {
    throw bad(`${place}.unit`, `must be one of ${units.join(', ')}, not ${quoted(unit)}`);
  }
  const offsetAt = offsetsOf(zone, `${place}.zone`);
  const compute = (value: Json | undefined): Json => {
    const time = typeof value === 'string' ? parseTime(value) : undefined;
    return time === undefined ? null : startOf(time, unit as DateUnit, offsetAt);
  };
  return { path, compute };
}

type OffsetAt = (time: number) => number;

/** The start of the interval that has the time, as RFC 3339 with its offset. */
function startOf(time: number, unit: DateUnit, offsetAt: OffsetAt): string {
  const offset = offsetAt(time);
  const local = time + offset;
  // An hour keeps the offset of the time, so that an hour that is repeated has two starts.
  if (unit === 'hour') return withOffset(local - modulo(local, hourMs), offset);
  const day = local - modulo(local, dayMs);
  const date = new Date(day);
  let start = day;
  // Monday is day 1.
  if (unit === 'week') start = day - modulo(date.getUTCDay() - 1, 7) * dayMs;
  if (unit === 'month') start = Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
  if (unit === 'year') start = Date.UTC(date.getUTCFullYear(), 0, 1);
  return midnight(start, offsetAt);
}

/** The first moment of a local day, which may begin later than at 0:00. */
function midnight(local: number, offsetAt: OffsetAt): string {
  const before = offsetAt(local - dayMs);
  const around = [before, offsetAt(local + dayMs)];
  const valid = around.filter((offset) => offsetAt(local - offset) === offset);
  if (valid.length > 0) return withOffset(local, Math.max(...valid));
  const first = local - before;
  const offset = offsetAt(first);
  return withOffset(first + offset, offset);
}

function withOffset(local: number, offset: number): string {
  const text = new Date(local).toISOString().slice(0, -5);
  if (offset === 0) return `${text}Z`;
  const minutes = Math.round(Math.abs(offset) / 60_000);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${text}${offset < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}

function modulo(value: number, by: number): number {
  return ((value % by) + by) % by;
}

// Offsets change at full quarters of an hour.
const quarterMs = 900_000;
const maxCachedOffsets = 10_000;

/** The offset of a zone from UTC at a time, in milliseconds. */
function offsetsOf(zone: unknown, place: string): OffsetAt {
  if (zone === 'UTC') return () => 0;
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: String(zone),
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
      era: 'short',
    });
  } catch {
    throw bad(place, `must be a time zone such as Europe/Zurich, not ${quoted(zone)}`);
  }
  const cached = new Map<number, number>();
  return (time) => {
    const quarter = Math.floor(time / quarterMs);
    let offset = cached.get(quarter);
    if (offset === undefined) {
      offset = localTime(format, quarter * quarterMs) - quarter * quarterMs;
      if (cached.size >= maxCachedOffsets) cached.clear();
      cached.set(quarter, offset);
    }
    return offset;
  };
}

function localTime(format: Intl.DateTimeFormat, time: number): number {
  const parts = Object.fromEntries(
    format.formatToParts(time).map(({ type, value }) => [type, value]),
  );
  const part = (name: string) => Number(parts[name]);
  const year = parts['era'] === 'BC' ? 1 - part('year') : part('year');
  const date = new Date(0);
  date.setUTCFullYear(year, part('month') - 1, part('day'));
  return date.setUTCHours(part('hour'), part('minute'), part('second'));
}

/** Reads the value of a group from a record, given how to read its path. */
export function groupValue(
  { path, compute }: CheckedGroup,
  read: (path: Path) => (row: Row) => Json | undefined,
): (row: Row) => Json | undefined {
  const value = read(path);
  return compute ? (row) => compute(value(row)) : value;
}

function quoted(value: unknown): string {
  return typeof value === 'string' ? `"${value.slice(0, 40)}"` : describe(value);
}
