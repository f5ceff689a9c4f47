import type { TaskStatus } from '../../core/task.js';
import type { WorkListener } from './task-store.js';

/** The listeners of a task store. */
export abstract class ListeningStore {
  readonly #work = new Set<WorkListener>();
  readonly #cancelled = new Set<(id: string) => void>();
  readonly #ended = new Set<(id: string) => void>();

  onWork(listener: WorkListener): () => void {
    this.#work.add(listener);
    return () => this.#work.delete(listener);
  }

  onCancelled(listener: (id: string) => void): () => void {
    this.#cancelled.add(listener);
    return () => this.#cancelled.delete(listener);
  }

  onEnded(listener: (id: string) => void): () => void {
    this.#ended.add(listener);
    return () => this.#ended.delete(listener);
  }

  protected notifyWork(queue: string, handlers?: ReadonlySet<string>): void {
    for (const listener of this.#work) listener(queue, handlers);
  }

  protected notifyCancelled(id: string): void {
    for (const listener of this.#cancelled) listener(id);
  }

  /** Call it with tasks that may have ended. */
  protected notifyEnded(task: { id: string; status: TaskStatus }): void {
    if (task.status !== 'SUCCEEDED' && task.status !== 'DEAD') return;
    for (const listener of this.#ended) listener(task.id);
  }

  protected removeListeners(): void {
    for (const listeners of [this.#work, this.#cancelled, this.#ended]) listeners.clear();
  }
}
