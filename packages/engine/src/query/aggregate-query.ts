import { suggestion } from '@millrace/kit/nearest';
import {
  parseCondition,
  parseFilter,
  type Condition,
  type Filter,
  describe,
  canonicalText,
  timeText,
} from '../value/filter.js';
import {
  type Path,
  forEachValue,
  listedValue,
  plainValue,
  severalValues,
  type Row,
} from '../value/path.js';
import {
  bad,
  checkLookups,
  flag,
  listOf,
  membersOf,
  orderSteps,
  pathOf,
  wholeNumber,
  type CheckedLookup,
  type Lookup,
} from './query.js';
import { checkGroup, type CheckedGroup, type GroupExpression } from './group-expression.js';
import type { OrderBy } from './sort.js';
import { createHash } from 'node:crypto';
import { type Json, refuse } from '../value/documents.js';
import type { Block, SortSpace, SpillFile } from '../storage/sort-space.js';
import { compareValues } from '../value/order.js';

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
type AccumulatorOp = (typeof accumulatorOps)[number];

/** One value to compute for each group. */
interface Accumulator {
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
  /**
   * What defines a group: dotted paths, `{ dateTrunc: { field, unit, zone }, as }` or
   * `{ bucket: { field, edges }, as }`. Default: one group of all records.
   */
  groupBy?: readonly (string | GroupExpression)[] | undefined;
  aggregates?: readonly Accumulator[] | undefined;
  /** Which groups to return. Its fields name accumulators or group fields. */
  having?: Filter | undefined;
  /** By accumulators or group fields. Default: by group. */
  orderBy?: readonly OrderBy[] | undefined;
  /** Maximum number of groups. 0 or absent: all. */
  limit?: number | undefined;
  explain?: boolean | undefined;
  /** Joins records of other collections, before groups are made. */
  lookup?: Lookup | readonly Lookup[] | undefined;
}

/** A column of the result: first the group fields, then the accumulators. */
export interface Column {
  readonly text: string;
  readonly isTime: false;
  readonly at: number;
}

interface CheckedAccumulator {
  readonly name: string;
  readonly op: AccumulatorOp;
  readonly path: Path | undefined;
}

/** A validated aggregate query. */
export interface CheckedAggregate {
  readonly condition: Condition;
  readonly groupBy: readonly CheckedGroup[];
  readonly accumulators: readonly CheckedAccumulator[];
  readonly having: Condition<Column>;
  readonly order: readonly { column: Column; desc: boolean }[];
  /** Infinity: all. */
  readonly limit: number;
  readonly explain: boolean;
  readonly lookups: readonly CheckedLookup[];
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
  'lookup',
] as const;

/** Validates an aggregate query from outside. */
export function checkAggregate(input: unknown): CheckedAggregate {
  const query = membersOf(input, 'The query', members);
  const groupBy = listOf(query.groupBy, 'groupBy', maxGroupFields).map((field, i) =>
    checkGroup(field, `groupBy[${i}]`),
  );
  const accumulators = listOf(query.aggregates, 'aggregates', maxAccumulators).map((item, i) =>
    checkAccumulator(item, `aggregates[${i}]`),
  );
  const names = [...groupBy.map(({ name }) => name), ...accumulators.map(({ name }) => name)];
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
    lookups: checkLookups(query.lookup),
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

// Shorter values stay in memory: the number of groups limits them.
const minSpilledBytes = 256;
// A longer text is identified by its digest: V8 hashes long texts badly.
const maxPlainLength = 64;
const entryBytes = 64;
/** For all values of all count_distinct that run in a database at the same time. */
const maxDistinctBytes = 256 * 1024 * 1024;

/** A value of a group: in memory, or in the temporary file. */
export class HeldValue {
  #value: Json | undefined;
  #block: Block | undefined;
  #bytes = 0;

  constructor(
    private readonly space: AggregateSpace,
    value?: Json,
  ) {
    if (value !== undefined) this.set(value);
  }

  get isEmpty(): boolean {
    return this.#value === undefined && !this.#block;
  }

  get(): Json | undefined {
    return this.#block ? (this.space.read(this.#block) as [Json])[0] : this.#value;
  }

  set(value: Json): void {
    const bytes = sizeOf(value);
    this.space.hold(this, bytes, this.#block ? 0 : this.#bytes);
    this.#block = undefined;
    this.#value = value;
    this.#bytes = bytes;
  }

  /** Moves the value to the temporary file. */
  spill(write: (items: readonly Json[]) => Block): number {
    this.#block = write([this.#value!]);
    this.#value = undefined;
    return this.#bytes;
  }
}

/** The memory of the groups of one aggregate. What exceeds it goes to a temporary file. */
export class AggregateSpace {
  readonly #leave: () => void;
  readonly #long = new Set<HeldValue>();
  #bytes = 0;
  #distinctBytes = 0;
  #file: SpillFile | undefined;

  constructor(private readonly sortSpace: SortSpace) {
    this.#leave = sortSpace.enter();
  }

  /** True when the memory is used up: call `spill` soon. */
  get isFull(): boolean {
    return this.#bytes > this.sortSpace.share && this.#long.size > 0;
  }

  /** Whether values are in the temporary file, so that comparing them takes longer. */
  get hasSpilled(): boolean {
    return this.#file !== undefined;
  }

  hold(value: HeldValue, bytes: number, before: number): void {
    this.#bytes += bytes - before;
    if (bytes >= minSpilledBytes) this.#long.add(value);
    else this.#long.delete(value);
  }

  /** Moves all long values to the temporary file, with pauses. */
  async spill(pause: () => Promise<void> | undefined): Promise<void> {
    const file = (this.#file ??= this.sortSpace.openFile());
    for (const value of this.#long) {
      this.#bytes -= value.spill((items) => file.write(items));
      this.#long.delete(value);
      await pause();
    }
  }

  read(block: Block): unknown {
    return this.#file!.read(block);
  }

  /** Counts one more distinct value of a count_distinct. Refuses GROUP_LIMIT. */
  countDistinct(entry: string | number | boolean | null): void {
    const bytes = entryBytes + (typeof entry === 'string' ? entry.length : 0);
    this.#distinctBytes += bytes;
    this.sortSpace.distinctBytes += bytes;
    if (this.sortSpace.distinctBytes <= maxDistinctBytes) return;
    const limit = String(maxDistinctBytes);
    const text =
      `The different values of count_distinct take more than ${maxDistinctBytes / 2 ** 20} MiB, ` +
      'which all queries share; narrow the filter.';
    throw refuse('GROUP_LIMIT', text, { limit });
  }

  close(): void {
    this.#leave();
    this.sortSpace.distinctBytes -= this.#distinctBytes;
    this.#file?.close();
  }
}

/** Identifies a value: itself, or a digest where it is long or nested. */
export function identityOf(value: Json): string | number | boolean | null {
  if (typeof value === 'object' && value !== null) return `o${digestOf(canonicalText(value))}`;
  if (typeof value !== 'string') return value;
  return value.length <= maxPlainLength ? `s${value}` : `l${digestOf(value)}`;
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64');
}

/** Estimated memory of a value. */
export function sizeOf(value: Json): number {
  if (typeof value === 'string') return 24 + value.length;
  if (typeof value !== 'object' || value === null) return 8;
  let bytes = 48;
  for (const [name, part] of Object.entries(value)) bytes += name.length + 16 + sizeOf(part);
  return bytes;
}

/** The state of one accumulator for one group. */
export interface Gathered {
  add(row: Row): void;
  /** The value; null when there is nothing to compute it from. */
  result(): Cell;
}

/** A value, or a reference to one in a temporary file. */
export type Cell = Json | HeldValue;

/** Creates the state of one accumulator for a new group. */
export type GatheredMaker = () => Gathered;

export function compileAccumulator(
  { op, path }: CheckedAccumulator,
  space: AggregateSpace,
): GatheredMaker {
  if (!path) return () => new Count();
  const read = readerOf(path);
  switch (op) {
    case 'count':
      return () => new CountPresent(read);
    case 'sum':
      return () => new Sum(read);
    case 'avg':
      return () => new Average(read);
    case 'min':
      return () => new Extreme(read, -1, space);
    case 'max':
      return () => new Extreme(read, 1, space);
    case 'count_distinct':
      return () => new Distinct(read, space);
    case 'first':
      return () => new Edge(valueOf(path), -1, space);
    case 'last':
      return () => new Edge(valueOf(path), 1, space);
  }
}

/** The value of a path for a group or a result: times as text, several values as a list. */
export function valueOf(path: Path): (row: Row) => Json | undefined {
  const read = listedValue(path);
  if (!path.isTime) return read;
  return (row) => {
    const value = read(row);
    return typeof value === 'number' ? timeText(value) : value;
  };
}

/** Calls `use` with every value of the path. */
type Reader = (row: Row, use: (value: Json) => void) => void;

/** Calls `use` with every value of the path, and with the elements of those that are arrays. */
export function elementReader(path: Path): Reader {
  const read = readerOf(path);
  return (row, use) =>
    read(row, (value) => {
      if (Array.isArray(value)) for (const element of value) use(element);
      else use(value);
    });
}

function readerOf(path: Path): Reader {
  const plain = plainValue(path);
  return (row, use) => {
    const value = plain(row);
    if (value === severalValues) forEachValue(path, row, use);
    else if (value !== undefined) use(path.isTime ? timeText(value as number) : value);
  };
}

class Count implements Gathered {
  #count = 0;
  add(): void {
    this.#count++;
  }
  result(): Json {
    return this.#count;
  }
}

class CountPresent implements Gathered {
  #count = 0;
  constructor(private readonly read: Reader) {}
  add(row: Row): void {
    let present = false;
    this.read(row, () => (present = true));
    if (present) this.#count++;
  }
  result(): Json {
    return this.#count;
  }
}

/** Numbers are added as doubles, in order; other values are ignored. */
class Sum implements Gathered {
  protected sum = 0;
  protected count = 0;
  constructor(private readonly read: Reader) {}
  add(row: Row): void {
    this.read(row, this.#use);
  }
  #use = (value: Json) => {
    if (typeof value !== 'number') return;
    this.sum += value;
    this.count++;
  };
  result(): Json {
    return finite(this.sum);
  }
}

class Average extends Sum {
  override result(): Json {
    return this.count === 0 ? null : finite(this.sum / this.count);
  }
}

/** JSON has no infinity, which a sum of huge numbers may be. */
function finite(value: number): Json {
  return Number.isFinite(value) ? value : null;
}

/** The smallest or the largest value, in the order of all values. */
class Extreme implements Gathered {
  readonly #best: HeldValue;
  constructor(
    private readonly read: Reader,
    private readonly sign: 1 | -1,
    space: AggregateSpace,
  ) {
    this.#best = new HeldValue(space);
  }
  add(row: Row): void {
    this.read(row, this.#use);
  }
  #use = (value: Json) => {
    const best = this.#best.get();
    if (best === undefined || compareValues(value, best) * this.sign > 0) this.#best.set(value);
  };
  result(): Cell {
    return this.#best.isEmpty ? null : this.#best;
  }
}

class Distinct implements Gathered {
  readonly #seen = new Set<string | number | boolean | null>();
  constructor(
    private readonly read: Reader,
    private readonly space: AggregateSpace,
  ) {}
  add(row: Row): void {
    this.read(row, this.#use);
  }
  #use = (value: Json) => {
    const identity = identityOf(value);
    if (this.#seen.has(identity)) return;
    this.space.countDistinct(identity);
    this.#seen.add(identity);
  };
  result(): Json {
    return this.#seen.size;
  }
}

/** The value of the record with the lowest or highest id, among those that have the field. */
class Edge implements Gathered {
  #id = '';
  readonly #value: HeldValue;
  constructor(
    private readonly read: (row: Row) => Json | undefined,
    private readonly sign: 1 | -1,
    space: AggregateSpace,
  ) {
    this.#value = new HeldValue(space);
  }
  add(row: Row): void {
    // Records may come in index order, and a transaction's own come last.
    const { id } = row;
    if (!this.#value.isEmpty && (this.sign < 0 ? id > this.#id : id < this.#id)) return;
    const value = this.read(row);
    if (value === undefined) return;
    this.#value.set(value);
    this.#id = id;
  }
  result(): Cell {
    return this.#value.isEmpty ? null : this.#value;
  }
}
