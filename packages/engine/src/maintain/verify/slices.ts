import type { Core } from '../../core/core.js';
import type { Slice } from '../../core/slice.js';
import type { TableName, TableRow } from '../../storage/file/tables.js';
import type { SnapshotView } from '../../storage/views.js';

/**
 * Iterates over tables of a snapshot a few milliseconds at a time. Each slice opens the table again
 * after the last row, so no LMDB cursor stays open during pauses.
 */
export class TableWalker {
  readonly #slice: Slice;

  constructor(
    private readonly core: Core,
    private readonly view: SnapshotView,
  ) {
    this.#slice = core.newSlice();
  }

  async walk(table: TableName, visit: (row: TableRow) => void, from?: Buffer): Promise<void> {
    let start = from;
    do {
      start = this.#walkSome(table, start, visit);
      await this.#rest();
    } while (start);
  }

  /** Where to continue; undefined at the end. */
  #walkSome(
    table: TableName,
    start: Buffer | undefined,
    visit: (row: TableRow) => void,
  ): Buffer | undefined {
    for (const row of this.view.rows(table, start ? { start } : {})) {
      visit(row);
      if (this.#slice.spend(row.value.length)) return Buffer.concat([row.key, Buffer.of(0)]);
    }
    return undefined;
  }

  /** Yields to other work, then checks that the database is still open. */
  async #rest(): Promise<void> {
    if (this.#slice.due()) await this.#slice.pause();
    if (this.core.closed) throw this.core.closed;
  }
}
