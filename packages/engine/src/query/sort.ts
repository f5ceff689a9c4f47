import type { Json } from '../value/documents.js';
import { compareValues } from '../value/order.js';
import { sortValue, type Path, type Row } from '../value/path.js';

/** One step of a sort as in the API. */
export interface OrderBy {
  field: string;
  /** Descending. */
  desc?: boolean | undefined;
}

export interface SortKey {
  readonly path: Path;
  readonly desc: boolean;
}

/** A validated order: the keys, then the id, which makes it total. */
export interface SortOrder {
  readonly keys: readonly SortKey[];
  readonly idDesc: boolean;
}

/** The position of a record in an order. A missing field is `undefined`. */
export interface Position {
  keys: (Json | undefined)[];
  id: string;
}

/** Drops steps that cannot change the order: repeated ones, and all after the id. */
export function toSortOrder(steps: readonly SortKey[]): SortOrder {
  const keys: SortKey[] = [];
  for (const step of steps) {
    if (step.path.text === '$id') return { keys, idDesc: step.desc };
    if (!keys.some((key) => settles(key, step))) keys.push(step);
  }
  return { keys, idDesc: false };
}

/**
 * Whether records that are equal in the first step are equal in the second. The same path in the
 * other direction is different if it may have several values: ascending compares the smallest,
 * descending the largest.
 */
function settles(first: SortKey, second: SortKey): boolean {
  if (first.path.text !== second.path.text) return false;
  return first.desc === second.desc || first.path.segments.length <= 1;
}

/** Reads and compares positions; one for each query. */
export class Sorter {
  readonly #reads: ((row: Row) => Json | undefined)[];
  readonly #desc: boolean[];

  constructor(readonly order: SortOrder) {
    this.#reads = order.keys.map((key) => sortValue(key.path, key.desc));
    this.#desc = order.keys.map((key) => key.desc);
  }

  positionOf(row: Row): Position {
    return { keys: this.#reads.map((read) => read(row)), id: row.id };
  }

  compare = (a: Position, b: Position): number => {
    for (let i = 0; i < this.#desc.length; i++) {
      const order = compareValues(a.keys[i], b.keys[i]);
      if (order !== 0) return this.#desc[i] ? -order : order;
    }
    return this.#compareIds(a.id, b.id);
  };

  /** As `compare`, without creating a position for the record. */
  compareRow(row: Row, position: Position): number {
    for (let i = 0; i < this.#desc.length; i++) {
      const order = compareValues(this.#reads[i]!(row), position.keys[i]);
      if (order !== 0) return this.#desc[i] ? -order : order;
    }
    return this.#compareIds(row.id, position.id);
  }

  #compareIds(a: string, b: string): number {
    if (a === b) return 0;
    return a < b !== this.order.idDesc ? -1 : 1;
  }
}
