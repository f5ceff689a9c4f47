import { type Json, type JsonObject, refuse } from '../value/documents.js';
import {
  compileAccumulator,
  valueOf,
  type Cell,
  type Gathered,
  type GatheredMaker,
  type CheckedAggregate,
  type Column,
  AggregateSpace,
  HeldValue,
  elementReader,
  identityOf,
  sizeOf,
} from './aggregate-query.js';
import { compareValues } from '../value/order.js';
import type { RecordImage } from '../format/record.js';
import { groupValue } from './group-expression.js';
import { joinedRow, openLookups, type Join } from './lookup.js';
import { bad, membersOf, pathOf } from './query.js';
import { parseFilter, type Condition } from '../value/filter.js';
import type { Path, Row } from '../value/path.js';
import { planQuery } from './plan.js';
import { compilePredicate, compileWith, type Predicate } from '../value/predicate.js';
import { sortInSlices } from './sort.js';
import { reportOf, sourceWith, visitAll, type PlanReport, type QuerySource } from './source.js';

export interface AggregateGroup {
  /** Value by path of `groupBy`; null also for records that lack the field. */
  readonly key: JsonObject;
  /** Number of records. */
  readonly count: number;
  /** The computed values by accumulator name. */
  readonly values: JsonObject;
}

export interface AggregateResult {
  readonly groups: AggregateGroup[];
  readonly plan: PlanReport;
}

const maxGroups = 100_000;
// Maximum size of one message to a client.
const maxAnswerBytes = 64 * 1024 * 1024;
// Long values come from a file: a comparison may take a millisecond.
const spilledChunkLength = 8;

interface Group {
  key: HeldValue[];
  count: number;
  gathered: Gathered[];
}

/** Group fields, then accumulators, then the number of records. */
type Columns = Cell[];

/** Groups records and computes aggregates, in bounded memory. */
export async function aggregate(
  source: QuerySource,
  query: CheckedAggregate,
): Promise<AggregateResult> {
  const space = new AggregateSpace(source.sortSpace);
  try {
    return await aggregateIn(space, source, query);
  } finally {
    space.close();
  }
}

async function aggregateIn(
  space: AggregateSpace,
  source: QuerySource,
  query: CheckedAggregate,
): Promise<AggregateResult> {
  const { slice } = source;
  slice.enter();
  const plan = planQuery(query.condition, { keys: [], idDesc: false }, source.collection.indexes);
  const matches = compilePredicate(query.condition);
  const groups = new Groups(query, space);
  const join = openLookups(source, query.lookups);
  const pause = () => (slice.due() ? slice.pause() : undefined);
  const rows = await visitAll(
    sourceWith(source, query.lookups),
    plan,
    (image) => {
      if (matches(image)) groups.add(join ? joined(join, image) : image);
      return space.isFull;
    },
    () => space.spill(pause),
  );
  const isWanted = compileWith(query.having, anyColumn);
  const wanted: Columns[] = [];
  for (const group of groups.all()) {
    const columns = columnsOf(group);
    if (isWanted(columns)) wanted.push(columns);
    if (space.hasSpilled ? slice.due() : slice.spend(0)) await slice.pause();
  }
  const chunkLength = space.hasSpilled ? spilledChunkLength : undefined;
  const sorted = await sortInSlices(wanted, orderOf(query), slice, chunkLength);
  const answer: AggregateGroup[] = [];
  let bytes = 0;
  for (const columns of sorted) {
    if (answer.length === query.limit) break;
    const values = columns.map(valueOfCell);
    for (const value of values) bytes += sizeOf(value);
    if (bytes > maxAnswerBytes) throw tooLargeAnswer(answer.length);
    answer.push(toGroup(query, values));
    if (space.hasSpilled ? slice.due() : slice.spend(0)) await slice.pause();
  }
  const report = { ...reportOf(plan, rows, answer.length, slice), sortedInMemory: true };
  return { groups: answer, plan: report };
}

/** Reading other records would overwrite one that is read in place. */
function joined(join: Join, image: RecordImage): Row {
  const copy = image.keep();
  return joinedRow(copy, join(copy));
}

function columnsOf({ key, gathered, count }: Group): Columns {
  return [...key, ...gathered.map((each) => each.result()), count];
}

function valueOfCell(cell: Cell): Json {
  return cell instanceof HeldValue ? cell.get()! : cell;
}

function anyColumn(column: Column, test: (value: Json) => boolean): Predicate<Columns> {
  return (columns) => test(valueOfCell(columns[column.at]!));
}

/** The requested order, then by group. */
function orderOf(query: CheckedAggregate): (a: Columns, b: Columns) => number {
  const steps = query.order.map(({ column, desc }) => ({ at: column.at, sign: desc ? -1 : 1 }));
  for (let at = 0; at < query.groupBy.length; at++) steps.push({ at, sign: 1 });
  return (a, b) => {
    for (const { at, sign } of steps) {
      const order = compareValues(valueOfCell(a[at]!), valueOfCell(b[at]!));
      if (order !== 0) return order * sign;
    }
    return 0;
  };
}

function toGroup({ groupBy, accumulators }: CheckedAggregate, columns: Json[]): AggregateGroup {
  const named = (names: readonly string[], from: number): JsonObject =>
    Object.fromEntries(names.map((name, i) => [name, columns[from + i]!]));
  return {
    key: named(
      groupBy.map((group) => group.name),
      0,
    ),
    count: columns.at(-1) as number,
    values: named(
      accumulators.map(({ name }) => name),
      groupBy.length,
    ),
  };
}

/** A validated query for the different values of a field. */
export interface CheckedDistinct {
  readonly condition: Condition;
  readonly path: Path;
}

export interface DistinctResult {
  /** In order. An array gives its elements, a record without the field nothing. */
  readonly values: Json[];
  readonly plan: PlanReport;
}

/** Validates a query for the different values of a field. */
export function checkDistinct(input: unknown): CheckedDistinct {
  const { field, filter } = membersOf(input, 'The query', ['field', 'filter']);
  if (field === undefined) throw bad('field', 'is missing');
  return { condition: parseFilter(filter), path: pathOf(field, 'field') };
}

/** The different values of a field, in bounded memory. */
export async function distinct(
  source: QuerySource,
  { condition, path }: CheckedDistinct,
): Promise<DistinctResult> {
  const { slice } = source;
  slice.enter();
  const plan = planQuery(condition, { keys: [], idDesc: false }, source.collection.indexes);
  const matches = compilePredicate(condition);
  const read = elementReader(path);
  const values = new Map<string | number | boolean | null, Json>();
  let bytes = 0;
  const use = (value: Json) => {
    const identity = identityOf(value);
    if (values.has(identity)) return;
    bytes += sizeOf(value);
    if (values.size >= maxGroups) throw tooManyGroups();
    if (bytes > maxAnswerBytes) throw tooLargeAnswer(values.size);
    values.set(identity, value);
  };
  const rows = await visitAll(source, plan, (image) => {
    if (matches(image)) read(image, use);
    return false;
  });
  const sorted = await sortInSlices([...values.values()], compareValues, slice);
  return { values: sorted, plan: reportOf(plan, rows, sorted.length, slice) };
}

class Groups {
  readonly #reads: ((row: Row) => Json | undefined)[];
  readonly #makers: GatheredMaker[];
  /** By the identity of their keys. */
  readonly #groups = new Map<string | number | boolean | null, Group>();

  constructor(
    query: CheckedAggregate,
    private readonly space: AggregateSpace,
  ) {
    this.#reads = query.groupBy.map((group) => groupValue(group, valueOf));
    this.#makers = query.accumulators.map((each) => compileAccumulator(each, space));
    // Without `groupBy` there is one group even when no record matches.
    if (this.#reads.length === 0) this.#groups.set(identityOfKey([]), this.#make([]));
  }

  add(row: Row): void {
    const key = this.#reads.map((read) => read(row) ?? null);
    const identity = identityOfKey(key);
    let group = this.#groups.get(identity);
    if (!group) this.#groups.set(identity, (group = this.#make(key)));
    group.count++;
    for (const each of group.gathered) each.add(row);
  }

  all(): Iterable<Group> {
    return this.#groups.values();
  }

  #make(key: Json[]): Group {
    if (this.#groups.size >= maxGroups) throw tooManyGroups();
    return {
      key: key.map((value) => new HeldValue(this.space, value)),
      count: 0,
      gathered: this.#makers.map((make) => make()),
    };
  }
}

function identityOfKey(key: readonly Json[]): string | number | boolean | null {
  return key.length === 1 ? identityOf(key[0]!) : JSON.stringify(key.map(identityOf));
}

function tooLargeAnswer(count: number): Error {
  const limit = String(maxAnswerBytes);
  const text =
    `The first ${count} groups have ${maxAnswerBytes / 2 ** 20} MiB already; set a limit, or group ` +
    'by shorter values.';
  return refuse('GROUP_LIMIT', text, { limit });
}

function tooManyGroups(): Error {
  const limit = String(maxGroups);
  const text = `There are more than ${limit} groups; narrow the filter or group by less.`;
  return refuse('GROUP_LIMIT', text, { limit });
}
