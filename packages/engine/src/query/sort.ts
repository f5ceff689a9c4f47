import type { Json } from '../value/documents.js';
import { compareValues } from '../value/order.js';
import { sortValue, type Path, type Row } from '../value/path.js';

/** One step of a sort as the API has it. */
export interface OrderBy {
  field: string;
  /** From high to low. */
  desc?: boolean | undefined;
}

export interface SortKey {
  readonly path: Path;
  readonly desc: boolean;
}

/** A checked order: the keys, then the id, which makes it total. */
export interface SortOrder {
  readonly keys: readonly SortKey[];
  readonly idDesc: boolean;
}

/** Where a record stands in an order. A missing field is `undefined`. */
export interface Position {
  keys: (Json | undefined)[];
  id: string;
}

/** Drops what cannot change the order: a step that is there already, and all behind the id. */
export function toSortOrder(steps: readonly SortKey[]): SortOrder {
  const keys: SortKey[] = [];
  for (const step of steps) {
    if (step.path.text === '$id') return { keys, idDesc: step.desc };
    if (!keys.some((key) => settles(key, step))) keys.push(step);
  }
  return { keys, idDesc: false };
}

/**
 * Records that the first step leaves equal are equal for the second. The same path the other way
 * round is not, if it may have several values: up it goes by the smallest, down by the largest.
 */
function settles(first: SortKey, second: SortKey): boolean {
  if (first.path.text !== second.path.text) return false;
  return first.desc === second.desc || first.path.segments.length <= 1;
}

/** Reads positions and compares them; one for each query. */
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

  /** As `compare`, without making a position of the record first. */
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
