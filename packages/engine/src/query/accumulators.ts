import type { Json } from '../value/documents.js';
import { refuse } from '../value/refusal.js';
import type { CheckedAccumulator } from './aggregate-query.js';
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
import { canonicalText } from './values.js';

/** What one accumulator has gathered for one group. */
export interface Gathered {
  add(row: Row): void;
  /** The value; null when there is nothing to compute it from. */
  result(): Json;
}

/** Makes what one accumulator needs for each new group. */
export type GatheredMaker = () => Gathered;

const maxDistinctValues = 10_000_000;

export function compileAccumulator({ op, path }: CheckedAccumulator): GatheredMaker {
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
      return () => new Extreme(read, -1);
    case 'max':
      return () => new Extreme(read, 1);
    case 'count_distinct': {
      const budget = { left: maxDistinctValues };
      return () => new Distinct(read, budget);
    }
    case 'first':
      return () => new Edge(valueOf(path), -1);
    case 'last':
      return () => new Edge(valueOf(path), 1);
  }
}

/** The value of a path for a group or an answer: times as text, several values as a list. */
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

/** Numbers are added as they come, in doubles; what is not a number does not count. */
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
  #best: Json | undefined;
  constructor(
    private readonly read: Reader,
    private readonly sign: 1 | -1,
  ) {}
  add(row: Row): void {
    this.read(row, this.#use);
  }
  #use = (value: Json) => {
    if (this.#best === undefined || compareValues(value, this.#best) * this.sign > 0) {
      this.#best = value;
    }
  };
  result(): Json {
    return this.#best ?? null;
  }
}

class Distinct implements Gathered {
  readonly #plain = new Set<Json>();
  readonly #nested = new Set<string>();
  #isEmpty = true;
  constructor(
    private readonly read: Reader,
    private readonly budget: { left: number },
  ) {}
  add(row: Row): void {
    this.#isEmpty = false;
    this.read(row, this.#use);
  }
  #use = (value: Json) => {
    const before = this.#size;
    if (typeof value === 'object' && value !== null) this.#nested.add(canonicalText(value));
    else this.#plain.add(value);
    if (this.#size > before && this.budget.left-- === 0) throw tooManyValues();
  };
  get #size(): number {
    return this.#plain.size + this.#nested.size;
  }
  result(): Json {
    return this.#isEmpty ? null : this.#size;
  }
}

function tooManyValues(): Error {
  const limit = String(maxDistinctValues);
  const text = `count_distinct met more than ${limit} different values; narrow the filter.`;
  return refuse('GROUP_LIMIT', text, { limit });
}

/** The value of the record with the lowest or the highest id, among those that have the field. */
class Edge implements Gathered {
  #id = '';
  #value: Json | undefined;
  constructor(
    private readonly read: (row: Row) => Json | undefined,
    private readonly sign: 1 | -1,
  ) {}
  add(row: Row): void {
    // Records may come in the order of an index, and a transaction's own come last.
    const { id } = row;
    if (this.#value !== undefined && (this.sign < 0 ? id > this.#id : id < this.#id)) return;
    const value = this.read(row);
    if (value === undefined) return;
    this.#value = value;
    this.#id = id;
  }
  result(): Json {
    return this.#value ?? null;
  }
}
