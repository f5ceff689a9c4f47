import type { Core } from '../../core/core.js';
import type { Slice } from '../../core/slice.js';
import { foldedRow } from '../../storage/store.js';
import {
  tableNames,
  type TableName,
  type TableRow,
  type Tables,
} from '../../storage/file/tables.js';

/** Limits of one slice of work. */
export const copyLimits = {
  rows: 2_000,
  bytes: 2 ** 20,
  /**
   * Above this count touched rows are copied again before the copy continues, to keep their set
   * small.
   */
  touched: 20_000,
  /** Target number of rows left for the time while the writer is held. */
  calmRows: 500,
  calmRounds: 10,
};

const foldedPlace = { table: 'meta', key: foldedRow } as const;

type Write = { table: TableName; key: Buffer; value: Buffer | undefined };

/**
 * Copies the database's file while it is being written. The rows are copied in order, a slice at a
 * time, each from its own snapshot: none is held for long, so the old file need not grow. The
 * writer records which rows it touches meanwhile, and those that were copied before are copied
 * again. The last of them are copied while the writer is held, and then the two files are equal.
 */
export class StoreCopy {
  readonly #slice: Slice;
  /** Tables that are completely copied. */
  readonly #copied = new Set<TableName>();
  /** The table that is being copied, and its first key that is not copied yet. */
  #at: { table: TableName; from: Buffer | undefined } | undefined;
  /** Rows copied so far. */
  rows = 0;
  /** Rows compared so far. */
  compared = 0;

  constructor(
    private readonly core: Core,
    private readonly fresh: Tables,
    /** Called between slices; throws to cancel the copy. */
    private readonly pulse: () => Promise<void> | void,
    private readonly limits = copyLimits,
  ) {
    this.#slice = core.newSlice();
  }

  /** Copies every table once. Rows written meanwhile are left to `catchUp`. */
  async copyAll(): Promise<void> {
    this.core.writer.takeTouched();
    for (const table of tableNames) {
      let from: Buffer | undefined;
      do {
        this.#at = { table, from };
        const { rows, next } = this.#read(table, from);
        await this.#write(rows.map(({ key, value }) => ({ table, key, value })));
        this.rows += rows.length;
        from = next;
        this.#at = { table, from };
        if (!from) this.#copied.add(table);
        if (this.#touched > this.limits.touched) await this.catchUp();
        await this.#rest();
      } while (from);
    }
    this.#at = undefined;
  }

  /** Copies again until few rows are left, or their number no longer decreases. */
  async calmDown(): Promise<void> {
    const { calmRounds, calmRows } = this.limits;
    for (let round = 0; round < calmRounds && this.#touched > calmRows; round++) {
      await this.catchUp();
      await this.#rest();
    }
  }

  /** Copies the rows written since the last time again, and reads them back. */
  async catchUp(): Promise<void> {
    const touched = [...this.core.writer.takeTouched().rows(), foldedPlace];
    const view = this.core.snapshot();
    try {
      let writes: Write[] = [];
      let bytes = 0;
      for (const { table, key } of touched) {
        if (!this.#hasPassed(table, key)) continue;
        const value = view.get(table, key);
        writes.push({ table, key, value });
        bytes += key.length + (value?.length ?? 0);
        if (writes.length < this.limits.rows && bytes < this.limits.bytes) continue;
        await this.#write(writes);
        this.#readBack(writes);
        [writes, bytes] = [[], 0];
      }
      await this.#write(writes);
      this.#readBack(writes);
    } finally {
      view.done();
    }
  }

  /** Compares every row of the two files, except those written since the last `catchUp`. */
  async compareAll(): Promise<void> {
    for (const table of tableNames) {
      let from: Buffer | undefined;
      do {
        from = this.#compare(table, from);
        if (this.#touched > this.limits.touched) await this.catchUp();
        await this.#rest();
      } while (from);
    }
  }

  /** While the writer is held: checks that the tables have the same number of rows. */
  compareCounts(): void {
    this.core.tables.refresh();
    this.fresh.refresh();
    for (const table of tableNames) {
      const [old, copied] = [this.core.tables.stats(table).rows, this.fresh.stats(table).rows];
      if (old !== copied) throw differs(`${table} has ${old} rows, its copy ${copied}`);
    }
  }

  get #touched(): number {
    return this.core.writer.touched?.size ?? 0;
  }

  #read(
    table: TableName,
    from: Buffer | undefined,
  ): { rows: TableRow[]; next: Buffer | undefined } {
    const view = this.core.snapshot();
    const rows: TableRow[] = [];
    let bytes = 0;
    try {
      for (const row of view.rows(table, from ? { start: from } : {})) {
        rows.push(row);
        bytes += row.key.length + row.value.length;
        const isEnough = rows.length >= this.limits.rows || bytes >= this.limits.bytes;
        if (this.#slice.spend(row.value.length) || isEnough) {
          return { rows, next: keyAfter(row.key) };
        }
      }
      return { rows, next: undefined };
    } finally {
      view.done();
    }
  }

  #hasPassed(table: TableName, key: Buffer): boolean {
    if (this.#copied.has(table)) return true;
    // The copy has not reached this row, and will copy its latest version.
    if (this.#at?.table !== table || !this.#at.from) return false;
    return Buffer.compare(key, this.#at.from) < 0;
  }

  async #write(writes: readonly Write[]): Promise<void> {
    if (writes.length === 0) return;
    await this.fresh.commit((put, remove) => {
      for (const { table, key, value } of writes) {
        if (value) put(table, key, value);
        else remove(table, key);
      }
    });
  }

  #readBack(writes: readonly Write[]): void {
    this.fresh.refresh();
    for (const { table, key, value } of writes) {
      const copied = this.fresh.get(table, key);
      if (value ? !copied?.equals(value) : copied) throw differs(rowName(table, key));
    }
  }

  /** Compares some rows; returns where to continue. */
  #compare(table: TableName, from: Buffer | undefined): Buffer | undefined {
    const view = this.core.snapshot();
    this.fresh.refresh();
    const range = from ? { start: from } : {};
    const copies = this.fresh.range(table, range)[Symbol.iterator]();
    try {
      const nextCopy = () => this.#untouched(table, copies);
      let copy = nextCopy();
      let seen = 0;
      for (const row of view.rows(table, range)) {
        if (!this.#isTouched(table, row.key)) {
          if (!copy || !copy.key.equals(row.key) || !copy.value.equals(row.value)) {
            throw differs(rowName(table, row.key));
          }
          copy = nextCopy();
        }
        this.compared++;
        const isEnough = ++seen >= this.limits.rows;
        if (this.#slice.spend(row.value.length) || isEnough) return keyAfter(row.key);
      }
      if (copy) throw differs(rowName(table, copy.key));
      return undefined;
    } finally {
      copies.return?.();
      view.done();
    }
  }

  #untouched(table: TableName, rows: Iterator<TableRow>): TableRow | undefined {
    for (;;) {
      const step = rows.next();
      if (step.done) return undefined;
      if (!this.#isTouched(table, step.value.key)) return step.value;
    }
  }

  /** Folds change one row that no batch writes. */
  #isTouched(table: TableName, key: Buffer): boolean {
    const isFolded = table === 'meta' && key.equals(foldedRow);
    return isFolded || (this.core.writer.touched?.has(table, key) ?? false);
  }

  async #rest(): Promise<void> {
    await this.#slice.pause();
    await this.pulse();
  }
}

function keyAfter(key: Buffer): Buffer {
  return Buffer.concat([key, Buffer.of(0)]);
}

function rowName(table: TableName, key: Buffer): string {
  return `the row ${key.toString('hex')} of ${table}`;
}

function differs(where: string): Error {
  return new Error(`The copy is not the same as the file: ${where}`);
}
