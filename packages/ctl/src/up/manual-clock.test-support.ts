import { sleepOn, type Clock } from '@millrace/kit/clock';

/** A clock that a test advances. */
export class ManualClock implements Clock {
  #now = 0;
  #timers: { at: number; run: () => void }[] = [];

  now = () => this.#now;
  monotonic = () => this.#now;

  after = (delayMs: number, run: () => void) => {
    const timer = { at: this.#now + delayMs, run };
    this.#timers.push(timer);
    return {
      cancel: () => {
        this.#timers = this.#timers.filter((each) => each !== timer);
      },
    };
  };

  sleep = (delayMs: number, signal?: AbortSignal) => sleepOn(this, delayMs, signal);

  /** Whether a timer is waiting. */
  get isAwaited(): boolean {
    return this.#timers.length > 0;
  }

  advance(byMs: number): void {
    this.#now += byMs;
    const due = this.#timers.filter(({ at }) => at <= this.#now);
    this.#timers = this.#timers.filter(({ at }) => at > this.#now);
    for (const { run } of due) run();
  }
}
