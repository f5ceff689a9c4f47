import type { Clock } from '@millrace/kit/clock';
import type { TaskStore } from '../storage/task-store.js';

export interface TaskWaitsOptions {
  store: Pick<TaskStore, 'onEnded'>;
  clock: Clock;
  /** A waiting request is no load. */
  load: { enter(bodyBytes: number): void; leave(bodyBytes: number): void };
}

/** Requests that wait for the end of a task. */
export class TaskWaits {
  readonly #waiting = new Map<string, Set<() => void>>();
  readonly #stopListening: () => void;
  #isClosed = false;

  constructor(private readonly options: TaskWaitsOptions) {
    this.#stopListening = options.store.onEnded((id) => this.#wake(id));
  }

  /** False: the server shuts down, and nothing waits any more. */
  get isOpen(): boolean {
    return !this.#isClosed;
  }

  /**
   * Resolves when the task ends through this server or the time is over. `check` runs after the
   * wait has begun, so that no end is missed; true ends the wait.
   */
  async until(id: string, waitMs: number, check: () => Promise<boolean>): Promise<void> {
    const { clock, load } = this.options;
    let wake: () => void = () => undefined;
    const woken = new Promise<void>((resolve) => (wake = resolve));
    const waiting = this.#waiting.get(id) ?? new Set();
    waiting.add(wake);
    this.#waiting.set(id, waiting);
    const timer = clock.after(waitMs, wake);
    try {
      if (this.#isClosed || (await check())) return;
      load.leave(0);
      await woken;
      load.enter(0);
    } finally {
      timer.cancel();
      waiting.delete(wake);
      if (waiting.size === 0) this.#waiting.delete(id);
    }
  }

  /** Ends all waits, for a graceful shutdown. */
  close(): void {
    this.#isClosed = true;
    this.#stopListening();
    for (const waiting of this.#waiting.values()) for (const wake of waiting) wake();
  }

  #wake(id: string): void {
    for (const wake of this.#waiting.get(id) ?? []) wake();
  }
}
