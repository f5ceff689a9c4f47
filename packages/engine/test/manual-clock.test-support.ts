import { sleepOn, type Clock, type Timer } from '@millrace/kit/clock';

interface ManualTimer {
  at: number;
  run: () => void;
}

/** A clock that stands still until a test moves it. Timers run inside `advance`, in their order. */
export class ManualClock implements Clock {
  #elapsedMs = 0;
  readonly #timers = new Set<ManualTimer>();

  constructor(private startAt = Date.UTC(2030, 0, 1)) {}

  now(): number {
    return this.startAt + this.#elapsedMs;
  }

  monotonic(): number {
    return this.#elapsedMs;
  }

  after(delayMs: number, run: () => void): Timer {
    const timer = { at: this.#elapsedMs + delayMs, run };
    this.#timers.add(timer);
    return { cancel: () => this.#timers.delete(timer) };
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, delayMs, signal);
  }

  /** Lets time pass and runs the timers that are due on the way. */
  advance(durationMs: number): void {
    const end = this.#elapsedMs + durationMs;
    for (;;) {
      const next = [...this.#timers].sort((a, b) => a.at - b.at)[0];
      if (!next || next.at > end) break;
      this.#timers.delete(next);
      this.#elapsedMs = Math.max(this.#elapsedMs, next.at);
      next.run();
    }
    this.#elapsedMs = end;
  }

  /** Lets time pass as on a machine that was asleep: no timer runs before `advance`. */
  skip(durationMs: number): void {
    this.#elapsedMs += durationMs;
  }

  /** Sets the clock on the wall, forward or back; timers do not notice. */
  setBack(durationMs: number): void {
    this.startAt -= durationMs;
  }

  get timers(): number {
    return this.#timers.size;
  }
}
