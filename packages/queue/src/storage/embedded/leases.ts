import type { RowReader, RowWriter } from '@millrace/engine';
import { idLength, kinds, timeKey, timeOf } from './keys.js';

/**
 * Leases of one claim with the same expiry share a row, a list of ids: tasks claimed together are
 * mostly settled together, so this saves writes. The key of the row has the id of its first task.
 */
export class TouchedLeases {
  readonly #lists = new Map<string, TouchedList>();
  /** The list that this step creates for each expiry. */
  readonly #begun = new Map<number, TouchedList>();
  #last: TouchedList | undefined;

  /** Adds a lease. Returns the name of its list. */
  add(end: number, id: string): string {
    let list = this.#begun.get(end);
    if (!list) this.#begun.set(end, (list = this.#touch(end, id)));
    list.added.push(id);
    return list.name;
  }

  remove(end: number, list: string, id: string): void {
    this.#touch(end, list).removed.add(id);
  }

  write(rows: RowWriter): void {
    for (const { end, name, added, removed } of this.#lists.values()) {
      const key = timeKey(kinds.lease, end, name);
      const before = rows.get(key);
      const left = before ? idsIn(before).filter((id) => !removed.has(id)) : [];
      left.push(...added);
      if (left.length > 0) rows.put(key, encodeIds(left));
      else if (before) rows.remove(key);
    }
  }

  #touch(end: number, name: string): TouchedList {
    // Tasks settled together were mostly claimed together.
    if (this.#last?.end === end && this.#last.name === name) return this.#last;
    const place = `${end} ${name}`;
    let list = this.#lists.get(place);
    if (!list) this.#lists.set(place, (list = { end, name, added: [], removed: new Set() }));
    this.#last = list;
    return list;
  }
}

interface TouchedList {
  end: number;
  name: string;
  added: string[];
  removed: Set<string>;
}

/** The tasks whose leases end by `now`, the longest past first. */
export function endedLeaseIds(rows: RowReader, now: number, limit: number): string[] {
  const range = { start: Buffer.of(kinds.lease), end: timeKey(kinds.lease, now + 1) };
  const ended: string[] = [];
  let together: string[] = [];
  let at: number | undefined;
  for (const { key, value } of rows.range(range)) {
    if (timeOf(key) !== at) {
      ended.push(...together.toSorted());
      if (ended.length >= limit) return ended.slice(0, limit);
      together = [];
      at = timeOf(key);
    }
    together.push(...idsIn(value));
  }
  ended.push(...together.toSorted());
  return ended.slice(0, limit);
}

export function encodeIds(ids: readonly string[]): Buffer {
  const value = Buffer.allocUnsafe(ids.length * idLength);
  for (let i = 0; i < ids.length; i++) value.write(ids[i]!, i * idLength, 'latin1');
  return value;
}

export function idsIn(value: Buffer): string[] {
  const ids: string[] = [];
  for (let at = 0; at < value.length; at += idLength) {
    ids.push(value.toString('latin1', at, at + idLength));
  }
  return ids;
}
