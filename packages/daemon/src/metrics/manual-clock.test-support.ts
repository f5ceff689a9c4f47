import type { Clock, Timer } from '@millrace/kit/clock';

/** A clock that a test moves. Whoever sleeps moves it himself, so that no test waits. */
export class ManualClock implements Clock {
  readonly timers: { delayMs: number; run: () => void }[] = [];
  #elapsedMs = 0;

  constructor(private readonly startAt = Date.parse('2026-01-15T09:30:00.000Z')) {}

  now = () => this.startAt + this.#elapsedMs;
  monotonic = () => this.#elapsedMs;

  after(delayMs: number, run: () => void): Timer {
    const timer = { delayMs, run };
    this.timers.push(timer);
    return { cancel: () => this.#drop(timer) };
  }

  async sleep(delayMs: number): Promise<void> {
    this.pass(delayMs);
  }

  pass(durationMs: number): void {
    this.#elapsedMs += durationMs;
  }

  /** Lets the time of the timer that was set last come. */
  ring(): void {
    const timer = this.timers.at(-1);
    if (!timer) throw new Error('No timer is set');
    this.#drop(timer);
    this.pass(timer.delayMs);
    timer.run();
  }

  #drop(timer: { delayMs: number; run: () => void }): void {
    const at = this.timers.indexOf(timer);
    if (at >= 0) this.timers.splice(at, 1);
  }
}
