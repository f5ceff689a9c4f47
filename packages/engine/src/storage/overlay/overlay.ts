import type { KeyRange } from '../file/in-place.js';
import type { TableName, PutRow, RemoveRow, TableRow } from '../file/tables.js';

/** A row in memory; `value` is undefined when the key was removed. */
export interface OverlayRow {
  key: Buffer;
  value: Buffer | undefined;
  /** The batch that wrote it; 0 while it is not in the log. */
  lsn: number;
  /** The version before it, for readers of an earlier snapshot. */
  older: OverlayRow | undefined;
}

/** More new keys than this are sorted and merged, fewer are inserted one by one. */
const maxInserted = 32;

/**
 * Rows of one table by key, and in key order. The order is built only when a range needs it. Keys
 * are compared as strings with one character per byte, which sort like the bytes.
 */
class RowMap {
  readonly #rows = new Map<string, OverlayRow>();
  /** May contain keys of removed rows, and duplicates. */
  #sorted: string[] = [];
  #unsorted: string[] = [];
  /** Increased when the order changes: running ranges then search their place again. */
  #version = 0;

  get(name: string): OverlayRow | undefined {
    return this.#rows.get(name);
  }

  values(): Iterable<OverlayRow> {
    return this.#rows.values();
  }

  entries(): Iterable<[string, OverlayRow]> {
    return this.#rows;
  }

  /** Puts a row and returns the one it replaces. */
  put(name: string, row: OverlayRow): OverlayRow | undefined {
    const before = this.#rows.get(name);
    this.#rows.set(name, row);
    if (!before) this.#unsorted.push(name);
    return before;
  }

  /** Undoes a `put`. */
  restore(name: string, before: OverlayRow | undefined): void {
    if (before) this.#rows.set(name, before);
    else this.#rows.delete(name);
  }

  *range(range: KeyRange, lsn = Infinity): Iterable<OverlayRow> {
    this.#sort();
    const start = range.start && nameOf(range.start);
    const end = range.end && nameOf(range.end);
    const step = range.reverse ? -1 : 1;
    let version = this.#version;
    let at = this.#place(start, step);
    let last: string | undefined;
    for (; at >= 0 && at < this.#sorted.length; at += step) {
      const name = this.#sorted[at]!;
      if (end !== undefined && (step > 0 ? name >= end : name <= end)) return;
      if (name === last) continue;
      last = name;
      let row = this.#rows.get(name);
      while (row && row.lsn > lsn) row = row.older;
      if (!row) continue;
      yield row;
      if (version !== this.#version) {
        version = this.#version;
        at = this.#place(last, step);
        // `last` itself is skipped above.
        at -= step;
      }
    }
  }

  /** The first place from `start` on, in the direction of the range. */
  #place(start: string | undefined, step: number): number {
    if (start === undefined) return step > 0 ? 0 : this.#sorted.length - 1;
    return step > 0 ? lowerBound(this.#sorted, start) : upperBound(this.#sorted, start) - 1;
  }

  #sort(): void {
    if (this.#unsorted.length === 0) return;
    const fresh = this.#unsorted;
    this.#unsorted = [];
    this.#version++;
    if (fresh.length <= maxInserted) {
      for (const name of fresh) {
        const at = lowerBound(this.#sorted, name);
        if (at === this.#sorted.length) this.#sorted.push(name);
        else if (this.#sorted[at] !== name) this.#sorted.splice(at, 0, name);
      }
      return;
    }
    fresh.sort(compareNames);
    this.#sorted = this.#sorted.length === 0 ? fresh : mergeSorted(this.#sorted, fresh);
  }
}

export function nameOf(key: Uint8Array): string {
  const bytes = Buffer.isBuffer(key)
    ? key
    : Buffer.from(key.buffer, key.byteOffset, key.byteLength);
  return bytes.toString('latin1');
}

export function compareNames(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function mergeSorted(a: readonly string[], b: readonly string[]): string[] {
  const merged: string[] = [];
  let i = 0;
  for (const name of b) {
    while (i < a.length && a[i]! <= name) merged.push(a[i++]!);
    merged.push(name);
  }
  while (i < a.length) merged.push(a[i++]!);
  return merged;
}

/** The first name that is not below `start`. */
function lowerBound(names: readonly string[], start: string): number {
  let low = 0;
  let high = names.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (names[middle]! < start) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first name above `start`. */
function upperBound(names: readonly string[], start: string): number {
  let low = 0;
  let high = names.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (names[middle]! <= start) low = middle + 1;
    else high = middle;
  }
  return low;
}

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

/** A row of a layer; `value` is undefined when the key was removed. */
type LayerRow = Pick<OverlayRow, 'key' | 'value'>;

/** The rows of a batch. A key is valid only during the call. */
export interface Rows {
  writeTo(put: PutRow, remove: RemoveRow): void;
}

/**
 * The writes of one batch that is not in the log yet, with an undo list for the running job: a
 * failed job is rolled back, and the other jobs of its batch continue.
 */
export class PendingWrites implements Rows {
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

/** The set of rows that were written. */
export class TouchedRows {
  readonly #tables = new Map<TableName, Set<string>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(table: TableName, key: Buffer): void {
    let keys = this.#tables.get(table);
    if (!keys) this.#tables.set(table, (keys = new Set()));
    const before = keys.size;
    keys.add(nameOf(key));
    this.#size += keys.size - before;
  }

  addAll(rows: Rows): void {
    const add = (table: TableName, key: Buffer) => this.add(table, key);
    rows.writeTo(add, add);
  }

  has(table: TableName, key: Buffer): boolean {
    return this.#tables.get(table)?.has(nameOf(key)) ?? false;
  }

  *rows(): Iterable<{ table: TableName; key: Buffer }> {
    for (const [table, keys] of this.#tables) {
      for (const name of keys) yield { table, key: Buffer.from(name, 'latin1') };
    }
  }
}
