import type { Core } from '../../core/core.js';
import type { Slice } from '../../core/slice.js';
import { foldedRow } from '../../storage/fold.js';
import {
  tableNames,
  type TableName,
  type TableRow,
  type Tables,
} from '../../storage/file/tables.js';

/** How much is done at a time. */
export const copyLimits = {
  rows: 2_000,
  bytes: 2 ** 20,
  /** Touched rows above this count are copied again before the copy continues: their set stays small. */
  touched: 20_000,
  /** So few are left for the moment when the writer is held, if that can be had. */
  calmRows: 500,
  calmRounds: 10,
};

const foldedPlace = { table: 'meta', key: foldedRow } as const;

type Write = { table: TableName; key: Buffer; value: Buffer | undefined };

/**
 * A copy of the database's file in the making, while that file is being written. The rows are
 * copied in order, a slice at a time, each from a snapshot of its own: none is held for long, so
 * the old file need not grow. The writer notes which rows it touches meanwhile, and those behind
 * the place that the copy has reached are copied again. At the end, with the writer held, the
 * last of them are, and the two files are the same.
 */
export class StoreCopy {
  readonly #slice: Slice;
  /** Tables that are wholly copied. */
  readonly #copied = new Set<TableName>();
  /** In the table that is being copied: the first key that is not. */
  #at: { table: TableName; from: Buffer | undefined } | undefined;
  /** Rows copied so far. */
  rows = 0;
  /** Rows compared so far. */
  compared = 0;

  constructor(
    private readonly core: Core,
    private readonly fresh: Tables,
    /** Called between slices; throws to give the copy up. */
    private readonly pulse: () => Promise<void> | void,
    private readonly limits = copyLimits,
  ) {
    this.#slice = core.newSlice();
  }

  /** Copies every table once. What is written meanwhile is left to `catchUp`. */
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

  /** Copies again until little is left to copy, or no less becomes of it. */
  async calmDown(): Promise<void> {
    const { calmRounds, calmRows } = this.limits;
    for (let round = 0; round < calmRounds && this.#touched > calmRows; round++) {
      await this.catchUp();
      await this.#rest();
    }
  }

  /** Copies again what was written since the last time, and reads it back. */
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

  /** Compares every row of the two files, but those written since the last `catchUp`. */
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

  /** With the writer held: that no table has a row more or less. */
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
    // The copy has yet to come here, and will find the row as it is then.
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

  /** Compares some rows; returns where to go on. */
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

  /** Folds change one row that no batch does. */
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
