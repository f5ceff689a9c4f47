import type { KeyRange } from '../file/key-range.js';

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
export class RowMap {
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

function compareNames(a: string, b: string): number {
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
