import { nameOf, RowMap, type OverlayRow } from './row-map.js';
import type { KeyRange, PutRow, RemoveRow, TableName, TableRow } from '../file/tables.js';

/** A row of a layer; `value` is undefined when the key was removed. */
type LayerRow = Pick<OverlayRow, 'key' | 'value'>;

/**
 * The writes of one batch that is not in the log yet, with an undo list for the running job: a
 * failed job is rolled back, and the other jobs of its batch continue.
 */
export class PendingWrites {
  readonly #tables = new Map<TableName, RowMap>();
  // Three items for each write of the job: an object for each would be most of the garbage.
  readonly #undo: (RowMap | string | OverlayRow | undefined)[] = [];
  /** Total size of all keys and values that were set, and number of writes. */
  bytes = 0;
  count = 0;

  /** The row after this batch; undefined when the batch does not write the key. */
  find(table: TableName, name: string): OverlayRow | undefined {
    return this.#tables.get(table)?.get(name);
  }

  set(table: TableName, key: Buffer, value: Buffer | undefined): void {
    let rows = this.#tables.get(table);
    if (!rows) this.#tables.set(table, (rows = new RowMap()));
    const name = nameOf(key);
    const before = rows.put(name, { key, value, lsn: 0, older: undefined });
    this.bytes += key.length + (value?.length ?? 0);
    this.count++;
    this.#undo.push(rows, name, before);
  }

  /** Rows of a range in order, including removed ones. */
  rows(table: TableName, range: KeyRange): Iterable<OverlayRow> {
    return this.#tables.get(table)?.range(range) ?? [];
  }

  has(table: TableName): boolean {
    return this.#tables.has(table);
  }

  /** `rollback` returns to this point. */
  begin(): void {
    this.#undo.length = 0;
  }

  rollback(): void {
    for (let i = this.#undo.length - 3; i >= 0; i -= 3) {
      const rows = this.#undo[i] as RowMap;
      rows.restore(this.#undo[i + 1] as string, this.#undo[i + 2] as OverlayRow | undefined);
    }
    this.#undo.length = 0;
  }

  forEach(visit: (table: TableName, row: OverlayRow, name: string) => void): void {
    for (const [table, rows] of this.#tables) {
      for (const [name, row] of rows.entries()) visit(table, row, name);
    }
  }

  writeTo(put: PutRow, remove: RemoveRow): void {
    this.forEach((table, { key, value }) => {
      if (value) put(table, key, value);
      else remove(table, key);
    });
  }
}

/** Merges rows of the store with layers of newer rows, the newest layer first, in range order. */
export function* mergeRows(
  layers: readonly Iterable<LayerRow>[],
  base: Iterable<TableRow>,
  range: KeyRange,
): Iterable<TableRow> {
  const sources = [...layers, base].map((rows) => rows[Symbol.iterator]());
  try {
    yield* merged(sources, range);
  } finally {
    // An open iterator keeps its snapshot, and with it all old pages.
    for (const source of sources) source.return?.();
  }
}

function* merged(sources: readonly Iterator<LayerRow>[], range: KeyRange): Iterable<TableRow> {
  const heads = sources.map((rows) => rows.next());
  const direction = range.reverse ? -1 : 1;
  let left = range.limit ?? Infinity;
  while (left > 0) {
    let best = -1;
    for (let i = 0; i < heads.length; i++) {
      if (heads[i]!.done) continue;
      const ahead =
        best < 0 ? -1 : Buffer.compare(heads[i]!.value.key, heads[best]!.value.key) * direction;
      if (ahead < 0) best = i;
    }
    if (best < 0) return;
    const row = heads[best]!.value as LayerRow;
    for (let i = best; i < heads.length; i++) {
      if (!heads[i]!.done && heads[i]!.value.key.equals(row.key)) heads[i] = sources[i]!.next();
    }
    if (row.value) {
      left--;
      yield row as TableRow;
    }
  }
}
