import type { Batch } from './store.js';
import type { KeyRange } from './file/in-place.js';
import type { TableName, TableRow } from './file/tables.js';
import type { BatchStore } from './writer.js';

type Rows = Map<string, Buffer>;

/** A store without a file, whose commits a test can hold back or make fail. */
export class MemoryTables {
  readonly #tables = new Map<TableName, Rows>();
  commits = 0;
  /** Called after a commit can be seen and before it is on disk. */
  onFlush: () => Promise<void> = () => Promise.resolve();
  /** Called before each commit with its number; it may wait or throw. */
  onCommit: (commit: number) => Promise<void> = () => Promise.resolve();

  get(table: TableName, key: Buffer): Buffer | undefined {
    return this.#rows(table).get(key.toString('latin1'));
  }

  *range(table: TableName, range: KeyRange): Iterable<TableRow> {
    yield* rowsIn(this.#rows(table), range);
  }

  getNamed(table: TableName, key: Buffer): Buffer | undefined {
    return this.get(table, key);
  }

  commit({ writes }: Batch, onVisible: () => void): Promise<void> {
    return this.commitDerived(writes, onVisible);
  }

  async commitDerived(writes: Pick<Batch['writes'], 'writeTo'>, onVisible: () => void) {
    const rows: [TableName, Buffer, Buffer | undefined][] = [];
    writes.writeTo(
      (table, key, value) => void rows.push([table, key, value]),
      (table, key) => void rows.push([table, key, undefined]),
    );
    await this.onCommit(++this.commits);
    for (const [table, key, value] of rows) {
      if (value) this.#rows(table).set(key.toString('latin1'), value);
      else this.#rows(table).delete(key.toString('latin1'));
    }
    onVisible();
    await this.onFlush();
  }

  refresh(): void {}

  isFull = false;
  foldFailure: unknown;
  /** Called when the writer waits for room. */
  onFoldSoon: () => void = () => undefined;
  foldSoon(): void {
    this.onFoldSoon();
  }

  asStore(): BatchStore {
    return this as unknown as BatchStore;
  }

  #rows(table: TableName): Rows {
    let rows = this.#tables.get(table);
    if (!rows) this.#tables.set(table, (rows = new Map()));
    return rows;
  }
}

/** What a range over plain rows gives, the slow and obvious way. */
export function rowsIn(rows: ReadonlyMap<string, Buffer>, range: KeyRange): TableRow[] {
  const { start, end, reverse = false } = range;
  const sign = reverse ? -1 : 1;
  const all = [...rows].map(([key, value]) => ({ key: Buffer.from(key, 'latin1'), value }));
  return all
    .sort((a, b) => Buffer.compare(a.key, b.key) * sign)
    .filter(({ key }) => !start || Buffer.compare(key, start) * sign >= 0)
    .filter(({ key }) => !end || Buffer.compare(key, end) * sign < 0)
    .slice(0, range.limit);
}
