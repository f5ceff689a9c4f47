import type { StoredTask } from './task-codec.js';

const maxTasks = 8_192;

interface Cached {
  bytes: Buffer;
  task: StoredTask;
}

/**
 * Cache of decoded tasks by their stored bytes: most tasks are claimed soon after their submit and
 * settled soon after their claim, and need not be decoded again.
 */
export class RecentTasks {
  /**
   * Two generations, the older of which is dropped as a whole: the oldest entry of a map is slow to
   * find after many deletions.
   */
  #tasks = new Map<string, Cached>();
  #older = new Map<string, Cached>();

  /** The caller must not change the task any more. */
  keep(bytes: Buffer, task: StoredTask): void {
    if (this.#tasks.size >= maxTasks / 2) {
      this.#older = this.#tasks;
      this.#tasks = new Map();
    }
    this.#tasks.set(task.row.id, { bytes, task });
  }

  /** Removes and returns the task that was stored as these bytes. */
  take(id: string, bytes: Buffer): StoredTask | undefined {
    const cached = this.#take(this.#tasks, id) ?? this.#take(this.#older, id);
    return cached?.bytes.equals(bytes) ? cached.task : undefined;
  }

  #take(tasks: Map<string, Cached>, id: string): Cached | undefined {
    const cached = tasks.get(id);
    if (cached) tasks.delete(id);
    return cached;
  }
}
