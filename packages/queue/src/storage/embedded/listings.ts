import type { RowReader, RowWriter } from '@millrace/engine';
import { kinds, queueTimeKey } from './keys.js';
import { encodeIds, idsIn } from './leases.js';

interface TouchedTime {
  queue: number;
  time: number;
  added: string[];
  removed: Set<string>;
}

/** Ids in one row. */
const maxIds = 500;

/**
 * Changes of the rows `listed`. Tasks of one step with the same creation time share a row: a row
 * for each task would cost a submit more than 5 %.
 */
export class TouchedListings {
  readonly #times = new Map<string, TouchedTime>();
  #last: TouchedTime | undefined;

  add(queue: number, time: number, id: string): void {
    this.#touch(queue, time).added.push(id);
  }

  remove(queue: number, time: number, id: string): void {
    this.#touch(queue, time).removed.add(id);
  }

  /** Returns by how many ids the lists of each queue have grown. */
  write(rows: RowWriter): Map<number, number> {
    const changes = new Map<number, number>();
    for (const { queue, time, added, removed } of this.#times.values()) {
      let change = added.length;
      if (removed.size > 0) change -= removeIds(rows, queue, time, removed);
      for (let from = 0; from < added.length; from += maxIds) {
        putIds(rows, queue, time, added.slice(from, from + maxIds));
      }
      changes.set(queue, (changes.get(queue) ?? 0) + change);
    }
    return changes;
  }

  #touch(queue: number, time: number): TouchedTime {
    if (this.#last?.queue === queue && this.#last.time === time) return this.#last;
    const place = `${queue} ${time}`;
    let touched = this.#times.get(place);
    if (!touched) {
      touched = { queue, time, added: [], removed: new Set() };
      this.#times.set(place, touched);
    }
    this.#last = touched;
    return touched;
  }
}

/** All ids of one creation time, not sorted. */
export function listedAt(rows: RowReader, queue: number, time: number): string[] {
  const range = rangeOf(queue, time);
  return Array.from(rows.range(range), ({ value }) => idsIn(value)).flat();
}

function removeIds(
  rows: RowWriter,
  queue: number,
  time: number,
  removed: ReadonlySet<string>,
): number {
  let count = 0;
  const lists = [...rows.range(rangeOf(queue, time))];
  for (const { key, value } of lists) {
    const ids = idsIn(value);
    const left = ids.filter((id) => !removed.has(id));
    if (left.length === ids.length) continue;
    count += ids.length - left.length;
    rows.remove(key);
    if (left.length > 0) putIds(rows, queue, time, left);
  }
  return count;
}

function putIds(rows: RowWriter, queue: number, time: number, ids: readonly string[]): void {
  rows.put(queueTimeKey(kinds.listed, queue, time, ids[0]), encodeIds(ids));
}

function rangeOf(queue: number, time: number) {
  return {
    start: queueTimeKey(kinds.listed, queue, time),
    end: queueTimeKey(kinds.listed, queue, time + 1),
  };
}
