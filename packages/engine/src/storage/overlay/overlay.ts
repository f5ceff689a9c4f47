import type { KeyRange, TableName } from '../file/tables.js';
import type { PendingWrites } from './pending.js';
import { RowMap, type OverlayRow } from './row-map.js';

const maxLayerRows = 1_000;
const maxLayerBytes = 4 * 2 ** 20;

/**
 * Rows of consecutive batches that are in the log and not yet in the store. A layer is folded in
 * one transaction, so it is no larger than the event loop can hand over at once, except for a
 * single large batch.
 */
export class Layer {
  readonly #tables = new Map<TableName, RowMap>();
  rows = 0;
  bytes = 0;
  lastLsn = 0;
  isSealed = false;

  /** Adds a batch. Replaced rows are kept for readers up to `newestReader`. */
  add(writes: PendingWrites, lsn: number, newestReader: number): void {
    writes.forEach((table, row, name) => {
      let rows = this.#tables.get(table);
      if (!rows) this.#tables.set(table, (rows = new RowMap()));
      row.lsn = lsn;
      const before = rows.put(name, row);
      if (before) row.older = before.lsn <= newestReader ? before : before.older;
      else this.rows++;
    });
    this.bytes += writes.bytes;
    this.lastLsn = lsn;
    if (this.rows >= maxLayerRows || this.bytes >= maxLayerBytes) this.isSealed = true;
  }

  has(table: TableName): boolean {
    return this.#tables.has(table);
  }

  /** The row as of batch `lsn`; undefined when it is not in the layer. */
  find(table: TableName, name: string, lsn: number): OverlayRow | undefined {
    let row = this.#tables.get(table)?.get(name);
    while (row && row.lsn > lsn) row = row.older;
    return row;
  }

  /** Rows of a range as of batch `lsn`, in order, including removed ones. */
  range(table: TableName, range: KeyRange, lsn: number): Iterable<OverlayRow> {
    return this.#tables.get(table)?.range(range, lsn) ?? [];
  }

  forEach(visit: (table: TableName, row: OverlayRow) => void): void {
    for (const [table, rows] of this.#tables) {
      for (const row of rows.values()) visit(table, row);
    }
  }
}

/** All rows that are in the log and not yet in the store, the newest layer first. */
export class Overlay {
  /** Replaced, never modified: a reader keeps the list it started with. */
  layers: readonly Layer[] = [];

  get bytes(): number {
    let bytes = 0;
    for (const layer of this.layers) bytes += layer.bytes;
    return bytes;
  }

  add(writes: PendingWrites, lsn: number, newestReader: number): void {
    let layer = this.layers[0];
    if (!layer || layer.isSealed) {
      layer = new Layer();
      this.layers = [layer, ...this.layers];
    }
    layer.add(writes, lsn, newestReader);
  }

  find(table: TableName, name: string): OverlayRow | undefined {
    for (const layer of this.layers) {
      const row = layer.find(table, name, Infinity);
      if (row) return row;
    }
    return undefined;
  }

  /** Removes a layer whose rows are all in the store. */
  drop(layer: Layer): void {
    this.layers = this.layers.filter((each) => each !== layer);
  }
}
