import type { TaskStatus } from '../core/task.js';

/** Listeners to the ends of tasks. */
export class EndListeners {
  readonly #listeners = new Set<(id: string) => void>();

  add(listener: (id: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Call it with tasks that may have ended. */
  notify(task: { id: string; status: TaskStatus }): void {
    if (task.status !== 'SUCCEEDED' && task.status !== 'DEAD') return;
    for (const listener of this.#listeners) listener(task.id);
  }

  clear(): void {
    this.#listeners.clear();
  }
}
