import type { PendingWrites } from './pending.js';
import type { TableName } from '../file/tables.js';

/** The set of rows that were written. */
export class TouchedRows {
  readonly #tables = new Map<TableName, Map<string, Buffer>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(table: TableName, key: Buffer): void {
    let keys = this.#tables.get(table);
    if (!keys) this.#tables.set(table, (keys = new Map()));
    const before = keys.size;
    keys.set(key.toString('latin1'), key);
    this.#size += keys.size - before;
  }

  addAll(writes: PendingWrites): void {
    const add = (table: TableName, key: Buffer) => this.add(table, key);
    writes.writeTo(add, add);
  }

  has(table: TableName, key: Buffer): boolean {
    return this.#tables.get(table)?.has(key.toString('latin1')) ?? false;
  }

  *rows(): Iterable<{ table: TableName; key: Buffer }> {
    for (const [table, keys] of this.#tables) {
      for (const key of keys.values()) yield { table, key };
    }
  }
}
