import { suggestion } from '@millrace/kit/nearest';
import { parseCondition, parseFilter, type Condition, type Filter } from './filter.js';
import type { Path } from '../value/path.js';
import { bad, flag, listOf, membersOf, orderSteps, pathOf, wholeNumber } from './query.js';
import type { OrderBy } from './sort.js';
import { describe } from './values.js';

const accumulatorOps = [
  'count',
  'sum',
  'avg',
  'min',
  'max',
  'count_distinct',
  'first',
  'last',
] as const;
export type AccumulatorOp = (typeof accumulatorOps)[number];

/** One value to compute for each group. */
export interface Accumulator {
  /** Name of the value in the result. */
  name: string;
  op: AccumulatorOp;
  /** Dotted path. Required except for `count`; with `count`, only records that have the field. */
  field?: string | undefined;
}

/** What to compute. */
export interface AggregateQuery {
  /** Which records. Default: all. */
  filter?: Filter | undefined;
  /** Dotted paths whose values define a group. Default: one group of all records. */
  groupBy?: readonly string[] | undefined;
  aggregates?: readonly Accumulator[] | undefined;
  /** Which groups to return. Its fields name accumulators or group fields. */
  having?: Filter | undefined;
  /** By accumulators or group fields. Default: by group. */
  orderBy?: readonly OrderBy[] | undefined;
  /** Maximum number of groups. 0 or absent: all. */
  limit?: number | undefined;
  explain?: boolean | undefined;
}

/** A column of the result: first the group fields, then the accumulators. */
export interface Column {
  readonly text: string;
  readonly isTime: false;
  readonly at: number;
}

export interface CheckedAccumulator {
  readonly name: string;
  readonly op: AccumulatorOp;
  readonly path: Path | undefined;
}

/** A validated aggregate query. */
export interface CheckedAggregate {
  readonly condition: Condition;
  readonly groupBy: readonly Path[];
  readonly accumulators: readonly CheckedAccumulator[];
  readonly having: Condition<Column>;
  readonly order: readonly { column: Column; desc: boolean }[];
  /** Infinity: all. */
  readonly limit: number;
  readonly explain: boolean;
}

const maxGroupFields = 16;
const maxAccumulators = 64;

const members = [
  'filter',
  'groupBy',
  'aggregates',
  'having',
  'orderBy',
  'limit',
  'explain',
] as const;

/** Validates an aggregate query from outside. */
export function checkAggregate(input: unknown): CheckedAggregate {
  const query = membersOf(input, 'The query', members);
  const groupBy = listOf(query.groupBy, 'groupBy', maxGroupFields).map((field, i) =>
    pathOf(field, `groupBy[${i}]`),
  );
  const accumulators = listOf(query.aggregates, 'aggregates', maxAccumulators).map((item, i) =>
    checkAccumulator(item, `aggregates[${i}]`),
  );
  const names = [...groupBy.map((path) => path.text), ...accumulators.map(({ name }) => name)];
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) {
    throw bad('groupBy and aggregates', `name "${twice}" twice: every value needs its own name`);
  }
  // Every group has a record count, so `having` and `orderBy` may refer to it.
  if (!names.includes('count')) names.push('count');
  const columnOf = (name: unknown, place: string): Column => {
    const at = typeof name === 'string' ? names.indexOf(name) : -1;
    if (at >= 0) return { text: names[at]!, isTime: false, at };
    throw unknownColumn(name, place, names);
  };
  return {
    condition: parseFilter(query.filter),
    groupBy,
    accumulators,
    having: parseCondition(query.having, 'having', columnOf),
    order: orderSteps(query.orderBy, columnOf).map(({ field, desc }) => ({ column: field, desc })),
    limit: wholeNumber(query.limit, 'limit') || Infinity,
    explain: flag(query.explain, 'explain', false),
  };
}

function checkAccumulator(item: unknown, place: string): CheckedAccumulator {
  if (item === undefined) throw bad(place, 'is missing');
  const { name, op, field } = membersOf(item, place, ['name', 'op', 'field']);
  if (typeof name !== 'string' || name === '') {
    throw bad(`${place}.name`, `must be the name of the value, not ${describe(name)}`);
  }
  if (name === '__proto__') throw bad(`${place}.name`, 'cannot be "__proto__"');
  if (typeof op !== 'string' || !(accumulatorOps as readonly string[]).includes(op)) {
    const known = `must be one of ${accumulatorOps.join(', ')}`;
    if (typeof op !== 'string') throw bad(`${place}.op`, `${known}, not ${describe(op)}`);
    throw bad(`${place}.op`, `"${op}" is unknown; it ${known}${suggestion(op, accumulatorOps)}`);
  }
  if (field === undefined && op !== 'count') {
    throw bad(`${place}.field`, `is missing: ${op} needs the path of a field`);
  }
  const path = field === undefined ? undefined : pathOf(field, `${place}.field`);
  return { name, op: op as AccumulatorOp, path };
}

function unknownColumn(name: unknown, place: string, names: readonly string[]): Error {
  if (typeof name !== 'string') {
    return bad(place, `must name an accumulator or a group field, not ${describe(name)}`);
  }
  const known = `known are ${names.join(', ')}`;
  const text = `"${name}" is neither an accumulator nor a group field; ${known}`;
  return bad(place, text + suggestion(name, names));
}
