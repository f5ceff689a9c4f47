import { suggestion } from '@millrace/kit/nearest';
import { jsonForm, refuse, type Json } from './documents.js';

export const filterOps = [
  'eq',
  'ne',
  'gt',
  'gte',
  'lt',
  'lte',
  'in',
  'nin',
  'exists',
  'contains',
  'prefix',
  'regex',
  'between',
  'elemMatch',
  'all',
  'size',
  'type',
  'eqi',
  'startsWithi',
] as const;
export type FilterOp = (typeof filterOps)[number];

/**
 * A condition on a record as in the API: `{field, op, value}`, or `and`, `or`, `not` over
 * conditions. An empty one matches all; parts given together must all hold.
 */
export interface Filter {
  field?: string | undefined;
  op?: FilterOp | undefined;
  value?: Json | undefined;
  and?: readonly Filter[] | undefined;
  or?: readonly Filter[] | undefined;
  not?: Filter | undefined;
}

/** Operators whose names are also common names of fields. */
const fieldLike: readonly string[] = ['type', 'size', 'all'];

/**
 * Whether a condition on elements of an array, in `elemMatch` or `$pull`, tests the elements
 * themselves (`{ gte: 5 }`) and not their fields (`{ sku: 'a' }`). A lone `type`, `size` or `all` is
 * a field where the element is an object.
 */
export function testsElement(condition: object, isObject: boolean): boolean {
  const names = Object.keys(condition);
  if (!names.some((name) => (filterOps as readonly string[]).includes(name))) return false;
  return !isObject || !names.every((name) => fieldLike.includes(name));
}

/** One step of a sort as in the API. */
export interface OrderBy {
  field: string;
  /** Descending. */
  desc?: boolean | undefined;
}

interface Conditions {
  filter?: Filter | undefined;
  having?: Filter | undefined;
  orderBy?: readonly OrderBy[] | undefined;
}

/** A query with its filters and order in the form of the engine and the wire protocol. */
export function plainQuery<Query extends object>(
  query: Query,
): Omit<Query, keyof Conditions> & Pick<Conditions, keyof Conditions & keyof Query> {
  const given: { [name in keyof Conditions]?: unknown } | null = query;
  const { filter, having, orderBy } = given ?? {};
  return {
    ...query,
    ...(filter === undefined ? {} : { filter: plainFilter(filter) }),
    ...(having === undefined ? {} : { having: plainFilter(having, 'having') }),
    ...(orderBy === undefined ? {} : { orderBy: plainOrder(orderBy) }),
  };
}

/**
 * Converts the object form of a filter to conditions. Anything else is returned unchanged, for the
 * engine to check.
 */
export function plainFilter(input: unknown, place = 'filter'): Filter | undefined {
  if (input === undefined || !isPlainObject(input)) return input as Filter | undefined;
  const { and, or, not } = input;
  const groups = {
    ...(and === undefined ? {} : { and: plainList(and, `${place}.and`) }),
    ...(or === undefined ? {} : { or: plainList(or, `${place}.or`) }),
    ...(not === undefined ? {} : { not: plainFilter(not, `${place}.not`) }),
  };
  if ('field' in input || 'op' in input) return { ...input, ...groups };
  const tests: Filter[] = [];
  for (const [path, test] of Object.entries(input)) {
    if (path === 'and' || path === 'or' || path === 'not') continue;
    tests.push(...conditionsOn(path, test, `${place}.${path}`));
  }
  if (tests.length === 0) return groups;
  if (tests.length === 1) return { ...tests[0], ...groups };
  return { ...groups, and: [...tests, ...(groups.and ?? [])] };
}

/** Converts `{ age: 'desc' }` to steps. A list is returned unchanged. */
function plainOrder(input: unknown): readonly OrderBy[] {
  if (!isPlainObject(input)) return input as readonly OrderBy[];
  return Object.entries(input).map(([field, direction]) => {
    if (direction === 'asc' || direction === 'desc') return { field, desc: direction === 'desc' };
    throw refuse(
      'BAD_REQUEST',
      `orderBy.${field} must be "asc" or "desc", not ${shown(direction)}.`,
    );
  });
}

function plainList(input: unknown, place: string): readonly Filter[] {
  if (!Array.isArray(input)) return input as readonly Filter[];
  return input.map((item: unknown, i) => plainFilter(item, `${place}[${i}]`) as Filter);
}

function conditionsOn(field: string, test: unknown, place: string): Filter[] {
  if (test === undefined) {
    throw refuse('BAD_FILTER', `${place} is undefined: leave it out, or use {exists: false}.`);
  }
  if (!isPlainObject(test) || isValue(test)) return [{ field, op: 'eq', value: test as never }];
  const conditions = Object.entries(test).map(([op, value]) => {
    if (!(filterOps as readonly string[]).includes(op)) {
      const hint = suggestion(op, filterOps) || '.';
      throw refuse(
        'BAD_FILTER',
        `${place} has an unknown operator "${op}"${hint} For a field inside "${field}" write ` +
          `"${field}.${op}"; to compare a whole object use {eq: ...}.`,
      );
    }
    if (value === undefined) throw refuse('BAD_FILTER', `${place}.${op} is undefined.`);
    return { field, op: op as FilterOp, value: value as never };
  });
  if (conditions.length > 0) return conditions;
  throw refuse('BAD_FILTER', `${place} is empty: it needs an operator such as eq, gt or in.`);
}

/** A Date, bytes or a vector, in either form. */
function isValue(test: object): boolean {
  // An invalid Date has no form; it is refused as the value it is meant to be.
  return '$bytes' in test || test instanceof Date || jsonForm(test) !== undefined;
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function shown(value: unknown): string {
  return JSON.stringify(value) ?? String(value);
}
