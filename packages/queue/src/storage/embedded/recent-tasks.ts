import type { StoredTask } from './task-codec.js';

const mostKept = 8_192;

/**
 * Tasks as they were written lately, so that whoever reads the same bytes again need not decode
 * them: most tasks are settled soon after they were claimed. Says nothing of what is stored.
 */
export class RecentTasks {
  readonly #tasks = new Map<string, { bytes: Buffer; task: StoredTask }>();

  /** Keep a task only when nobody changes it any more. */
  keep(bytes: Buffer, task: StoredTask): void {
    // The oldest goes: a map gives its keys in the order they came.
    if (this.#tasks.size >= mostKept) {
      for (const id of this.#tasks.keys()) {
        this.#tasks.delete(id);
        break;
      }
    }
    this.#tasks.set(task.row.id, { bytes, task });
  }

  /** The queues of those tasks that are here. */
  queuesOf(tasks: readonly { id: string }[]): Set<string> {
    const queues = new Set<string>();
    for (const { id } of tasks) {
      const kept = this.#tasks.get(id);
      if (kept) queues.add(kept.task.row.queue);
    }
    return queues;
  }

  /** The task of these bytes, if it is here. It is the caller's from then on. */
  take(id: string, bytes: Buffer): StoredTask | undefined {
    const kept = this.#tasks.get(id);
    if (!kept) return undefined;
    this.#tasks.delete(id);
    return kept.bytes.equals(bytes) ? kept.task : undefined;
  }
}
