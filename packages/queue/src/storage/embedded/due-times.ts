import type { RowReader } from '@millrace/engine';
import { kinds, timeOf } from './keys.js';
import { readCounters, readQueue } from './queue-rows.js';
import { firstOf, queues } from './reading.js';

/**
 * When a task of each running queue is next due. This is read often and for all queues, so the
 * times are cached until a change of the queue makes the store forget them.
 */
export class DueTimes {
  readonly #dueAt = new Map<string, number | undefined>();
  /** Queues whose last claim was full. */
  readonly #assumedDue = new Set<string>();
  /** How many inserts into a queue are being written, where no reader sees them yet. */
  readonly #inserts = new Map<string, number>();
  #names: readonly string[] | undefined;

  beginInsert(names: Iterable<string>): void {
    for (const name of names) this.#inserts.set(name, (this.#inserts.get(name) ?? 0) + 1);
  }

  endInsert(names: Iterable<string>): void {
    for (const name of names) {
      const left = this.#inserts.get(name)! - 1;
      if (left > 0) this.#inserts.set(name, left);
      else this.#inserts.delete(name);
      this.forget(name);
    }
  }

  assumeDue(name: string): void {
    this.#dueAt.delete(name);
    this.#assumedDue.add(name);
  }

  forget(name: string): void {
    this.#dueAt.delete(name);
    this.#assumedDue.delete(name);
  }

  forgetAll(): void {
    this.#dueAt.clear();
    this.#assumedDue.clear();
  }

  /** A queue was created or deleted. */
  forgetQueues(): void {
    this.#names = undefined;
  }

  /** A claim need not read first. */
  isAssumedDue(name: string): boolean {
    return this.#inserts.has(name) || this.#assumedDue.has(name);
  }

  isDue(name: string, now: number, rows: RowReader): boolean {
    const at = this.#of(name, rows);
    return at !== undefined && at <= now;
  }

  read(rows: RowReader): Map<string, number> {
    const due = new Map<string, number>();
    this.#names ??= queues(rows).map((queue) => queue.name);
    for (const name of this.#names) {
      const at = this.#of(name, rows);
      if (at !== undefined) due.set(name, at);
    }
    return due;
  }

  /** Undefined: nothing is pending, or the queue is paused. */
  #of(name: string, rows: RowReader): number | undefined {
    if (!this.#dueAt.has(name)) this.#dueAt.set(name, dueAt(rows, name));
    return this.#dueAt.get(name);
  }
}

function dueAt(rows: RowReader, name: string): number | undefined {
  const queue = readQueue(rows, name);
  if (!queue || queue.paused) return undefined;
  const { number } = queue;
  if (readCounters(rows, number).pending === 0) return undefined;
  let earliest: number | undefined;
  for (const kind of [kinds.ready, kinds.lined, kinds.scheduled]) {
    const first = firstOf(rows, kind, number);
    if (first) earliest = Math.min(earliest ?? Infinity, timeOf(first));
  }
  return earliest;
}
