import { type Clock, sleepOn, systemClock, type Timer } from '@millrace/kit/clock';

interface Waiting {
  at: number;
  run: () => void;
}

/** A clock that stands still until it is set, for tests of handlers. */
export class ManualClock implements Clock {
  #now = systemClock.now();
  readonly #startedAt = this.#now;
  readonly #waiting = new Set<Waiting>();

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now - this.#startedAt;
  }

  after(delayMs: number, run: () => void): Timer {
    const waiting = { at: this.#now + Math.max(0, delayMs), run };
    this.#waiting.add(waiting);
    if (delayMs <= 0) setImmediate(() => this.#fire(waiting));
    return { cancel: () => void this.#waiting.delete(waiting) };
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, delayMs, signal);
  }

  /** Moves the time forward, and calls what waited for it, the earliest first. */
  set(now: number): void {
    this.#now = now;
    const due = Array.from(this.#waiting).filter(({ at }) => at <= now);
    for (const waiting of due.toSorted((a, b) => a.at - b.at)) this.#fire(waiting);
  }

  #fire(waiting: Waiting): void {
    if (this.#waiting.delete(waiting)) waiting.run();
  }
}
