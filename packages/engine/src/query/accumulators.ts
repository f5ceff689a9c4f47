import type { Json } from '../value/documents.js';
import type { CheckedAccumulator } from './aggregate-query.js';
import { HeldValue, identityOf, type AggregateSpace } from './aggregate-space.js';
import { compareValues } from '../value/order.js';
import {
  forEachValue,
  listedValue,
  plainValue,
  severalValues,
  type Path,
  type Row,
} from '../value/path.js';
import { timeText } from './time.js';

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
