import type { KeyRange, PutRow, RemoveRow, TableName, TableRow, Tables } from './tables.js';

type Rows = Map<string, Buffer>;

/** A `Tables` without a file, whose commits a test can hold back or make fail. */
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

  async commit(
    writes: (put: PutRow, remove: RemoveRow) => void,
    onVisible?: () => void,
  ): Promise<void> {
    const rows: [TableName, Buffer, Buffer | undefined][] = [];
    writes(
      (table, key, value) => void rows.push([table, key, value]),
      (table, key) => void rows.push([table, key, undefined]),
    );
    await this.onCommit(++this.commits);
    for (const [table, key, value] of rows) {
      if (value) this.#rows(table).set(key.toString('latin1'), value);
      else this.#rows(table).delete(key.toString('latin1'));
    }
    onVisible?.();
    await this.onFlush();
  }

  refresh(): void {}

  asTables(): Tables {
    return this as unknown as Tables;
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
