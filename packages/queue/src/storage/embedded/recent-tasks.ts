import type { StoredTask } from './task-codec.js';

const maxTasks = 8_192;

/**
 * Cache of decoded tasks by their stored bytes: most tasks are claimed soon after their submit and
 * settled soon after their claim, and need not be decoded again.
 */
export class RecentTasks {
  readonly #tasks = new Map<string, { bytes: Buffer; task: StoredTask }>();

  /** The caller must not change the task any more. */
  keep(bytes: Buffer, task: StoredTask): void {
    // Drops the oldest: a map iterates in insertion order.
    if (this.#tasks.size >= maxTasks) {
      for (const id of this.#tasks.keys()) {
        this.#tasks.delete(id);
        break;
      }
    }
    this.#tasks.set(task.row.id, { bytes, task });
  }

  /** Removes and returns the task that was stored as these bytes. */
  take(id: string, bytes: Buffer): StoredTask | undefined {
    const cached = this.#tasks.get(id);
    if (!cached) return undefined;
    this.#tasks.delete(id);
    return cached.bytes.equals(bytes) ? cached.task : undefined;
  }
}
