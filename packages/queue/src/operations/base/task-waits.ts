import type { Clock } from '@millrace/kit/clock';
import type { TaskStore } from '../../storage/port/task-store.js';
import { rateLimited } from './refusal.js';

/** Waits of one principal at a time: each reads its task once a second. */
const maxWaits = 10_000;

export interface TaskWaitsOptions {
  store: Pick<TaskStore, 'onEnded' | 'onCancelled'>;
  clock: Clock;
  /** A waiting request is no load. */
  load: { enter(bodyBytes: number): void; leave(bodyBytes: number): void };
}

/** Requests that wait for the end of a task. */
export class TaskWaits {
  readonly #waiting = new Map<string, Set<() => void>>();
  readonly #byPrincipal = new Map<string, number>();
  readonly #stops: (() => void)[];
  #isClosed = false;

  constructor(private readonly options: TaskWaitsOptions) {
    const wake = (id: string) => this.#wake(id);
    // A cancel on any server is reported here.
    this.#stops = [options.store.onEnded(wake), options.store.onCancelled(wake)];
  }

  /** False: the server shuts down, and nothing waits any more. */
  get isOpen(): boolean {
    return !this.#isClosed;
  }

  /**
   * Resolves when the task ends through this server or the time is over. `check` runs after the
   * wait has begun, so that no end is missed; true ends the wait.
   */
  async until(
    id: string,
    principal: string,
    waitMs: number,
    check: () => Promise<boolean>,
  ): Promise<void> {
    const { clock, load } = this.options;
    this.#enter(principal);
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
      this.#leave(principal);
    }
  }

  #enter(principal: string): void {
    const count = this.#byPrincipal.get(principal) ?? 0;
    if (count >= maxWaits) {
      const detail = `${principal} waits for ${count} tasks, the limit. Wait for fewer at a time.`;
      throw rateLimited({ name: 'principal', detail, retryAfterMs: 1_000, quota: maxWaits });
    }
    this.#byPrincipal.set(principal, count + 1);
  }

  #leave(principal: string): void {
    const left = this.#byPrincipal.get(principal)! - 1;
    if (left > 0) this.#byPrincipal.set(principal, left);
    else this.#byPrincipal.delete(principal);
  }

  /** Ends all waits, for a graceful shutdown. */
  close(): void {
    this.#isClosed = true;
    for (const stop of this.#stops) stop();
    for (const waiting of this.#waiting.values()) for (const wake of waiting) wake();
  }

  #wake(id: string): void {
    for (const wake of this.#waiting.get(id) ?? []) wake();
  }
}
