import type { TaskStatus } from '../../../src/core/task.js';
import type { TaskRow } from '../../../src/storage/port/store-parts.js';

export interface KeyHolder {
  id: string;
  until: number | null;
  handlerRef: string;
  status: TaskStatus | null;
}

/** Unique keys by queue. */
export class UniqueKeys {
  readonly #queues = new Map<string, Map<string, KeyHolder>>();

  holder(queue: string, key: string, now: number): KeyHolder | undefined {
    const holder = this.#of(queue).get(key);
    return holder && (holder.until === null || holder.until > now) ? holder : undefined;
  }

  hold({ id, queue, uniqueKey, uniqueUntil, handlerRef }: TaskRow): void {
    if (uniqueKey === null) return;
    this.#of(queue).set(uniqueKey, { id, until: uniqueUntil, handlerRef, status: null });
  }

  /** The task has ended: a key without a time is free. */
  release({ id, queue, uniqueKey, uniqueUntil }: TaskRow): void {
    if (uniqueKey === null || uniqueUntil !== null) return;
    if (this.#of(queue).get(uniqueKey)?.id === id) this.#of(queue).delete(uniqueKey);
  }

  /** The task is deleted, but a key with a time is still held. */
  keepOfDeleted({ id, queue, uniqueKey, status }: TaskRow): void {
    const holder = uniqueKey === null ? undefined : this.#of(queue).get(uniqueKey);
    if (holder?.id === id) holder.status = status;
  }

  /** A redriven task keeps its key only if it is free. */
  holdAgain(row: TaskRow, now: number): void {
    if (row.uniqueKey === null) return;
    const holder = this.holder(row.queue, row.uniqueKey, now);
    if (holder?.id === row.id) return;
    const isOver = row.uniqueUntil !== null && row.uniqueUntil <= now;
    if (holder || isOver) {
      row.uniqueKey = null;
      row.uniqueUntil = null;
    } else this.hold(row);
  }

  deleteQueue(queue: string): void {
    this.#queues.delete(queue);
  }

  #of(queue: string): Map<string, KeyHolder> {
    let keys = this.#queues.get(queue);
    if (!keys) this.#queues.set(queue, (keys = new Map()));
    return keys;
  }
}
