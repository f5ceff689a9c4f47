import type { KeyRange, PutRow, RemoveRow, TableName, TableRow } from './tables.js';

/** A row that a batch will write; `value` undefined means that it removes the key. */
interface PendingRow {
  key: Buffer;
  value: Buffer | undefined;
}

/**
 * The writes of one batch that are not visible in the file yet, with an undo for the job that is
 * running: a job that fails leaves nothing behind, and the others of its batch go on.
 */
export class PendingWrites {
  readonly #tables = new Map<TableName, PendingTable>();
  // Three items for each write of the job: an object for each would be most of the garbage.
  readonly #undo: (PendingTable | Buffer | PendingRow | undefined)[] = [];
  bytes = 0;

  /** The row as this batch leaves it; undefined when the batch does not touch the key. */
  find(table: TableName, key: Buffer): PendingRow | undefined {
    return this.#tables.get(table)?.find(key);
  }

  set(table: TableName, key: Buffer, value: Buffer | undefined): void {
    let rows = this.#tables.get(table);
    if (!rows) this.#tables.set(table, (rows = new PendingTable()));
    const before = rows.set(key, value);
    this.bytes += key.length + (value?.length ?? 0);
    this.#undo.push(rows, key, before);
  }

  /** Rows of a range in order, removed ones included. */
  rows(table: TableName, range: KeyRange): Iterable<PendingRow> {
    return this.#tables.get(table)?.range(range) ?? [];
  }

  has(table: TableName): boolean {
    return this.#tables.has(table);
  }

  /** From here on, `rollback` goes back to this point. */
  begin(): void {
    this.#undo.length = 0;
  }

  rollback(): void {
    for (let i = this.#undo.length - 3; i >= 0; i -= 3) {
      const rows = this.#undo[i] as PendingTable;
      rows.restore(this.#undo[i + 1] as Buffer, this.#undo[i + 2] as PendingRow | undefined);
    }
    this.#undo.length = 0;
  }

  writeTo(put: PutRow, remove: RemoveRow): void {
    for (const [table, rows] of this.#tables) {
      for (const row of rows.all()) {
        if (row.value) put(table, row.key, row.value);
        else remove(table, row.key);
      }
    }
  }
}

class PendingTable {
  readonly #rows = new Map<string, PendingRow>();
  // Kept in order only when someone asks for a range; most batches never do.
  #sorted: Buffer[] = [];
  #unsorted: Buffer[] = [];

  find(key: Buffer): PendingRow | undefined {
    return this.#rows.get(nameOf(key));
  }

  all(): Iterable<PendingRow> {
    return this.#rows.values();
  }

  set(key: Buffer, value: Buffer | undefined): PendingRow | undefined {
    const name = nameOf(key);
    const before = this.#rows.get(name);
    this.#rows.set(name, { key, value });
    if (!before) this.#unsorted.push(key);
    return before;
  }

  restore(key: Buffer, before: PendingRow | undefined): void {
    // A key that is gone again may stay in the ordered lists: `range` passes over it.
    if (before) this.#rows.set(nameOf(key), before);
    else this.#rows.delete(nameOf(key));
  }

  *range(range: KeyRange): Iterable<PendingRow> {
    this.#sort();
    const keys = this.#sorted;
    const step = range.reverse ? -1 : 1;
    let at = range.reverse ? lastNotAfter(keys, range.start) : firstNotBefore(keys, range.start);
    let last: Buffer | undefined;
    for (; at >= 0 && at < keys.length; at += step) {
      const key = keys[at]!;
      if (range.end && beyond(key, range.end, step)) return;
      // Restored keys may stand in the list twice.
      if (last && last.equals(key)) continue;
      last = key;
      const row = this.find(key);
      if (row) yield row;
    }
  }

  #sort(): void {
    if (this.#unsorted.length === 0) return;
    const fresh = this.#unsorted.sort(Buffer.compare);
    this.#unsorted = [];
    if (this.#sorted.length === 0) {
      this.#sorted = fresh;
      return;
    }
    const merged: Buffer[] = [];
    let i = 0;
    for (const key of fresh) {
      while (i < this.#sorted.length && Buffer.compare(this.#sorted[i]!, key) <= 0) {
        merged.push(this.#sorted[i++]!);
      }
      merged.push(key);
    }
    while (i < this.#sorted.length) merged.push(this.#sorted[i++]!);
    this.#sorted = merged;
  }
}

function nameOf(key: Buffer): string {
  return key.toString('latin1');
}

function beyond(key: Buffer, end: Uint8Array, step: number): boolean {
  return step > 0 ? Buffer.compare(key, end) >= 0 : Buffer.compare(key, end) <= 0;
}

function firstNotBefore(keys: Buffer[], start: Uint8Array | undefined): number {
  if (!start) return 0;
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (Buffer.compare(keys[middle]!, start) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

function lastNotAfter(keys: Buffer[], start: Uint8Array | undefined): number {
  if (!start) return keys.length - 1;
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (Buffer.compare(keys[middle]!, start) <= 0) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/**
 * Rows of the file with the layers of unwritten rows laid over them, the newest layer first.
 * Everything is in the order of the range.
 */
export function* mergeRows(
  layers: readonly Iterable<PendingRow>[],
  base: Iterable<TableRow>,
  range: KeyRange,
): Iterable<TableRow> {
  const sources = [...layers, base].map((rows) => rows[Symbol.iterator]());
  try {
    yield* merged(sources, range);
  } finally {
    // An iterator of the file that is left open keeps its snapshot, and with it every old page.
    for (const source of sources) source.return?.();
  }
}

function* merged(sources: readonly Iterator<PendingRow>[], range: KeyRange): Iterable<TableRow> {
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
    const row = heads[best]!.value as PendingRow;
    for (let i = best; i < heads.length; i++) {
      if (!heads[i]!.done && heads[i]!.value.key.equals(row.key)) heads[i] = sources[i]!.next();
    }
    if (row.value) {
      left--;
      yield row as TableRow;
    }
  }
}
