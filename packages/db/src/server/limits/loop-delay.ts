import type { Clock, Timer } from '@millrace/kit/clock';

const everyMs = 10;

/**
 * Measures how late the event loop is: what has arrived waits this long before anyone looks at
 * it. Looks only while there is something to do.
 */
export class LoopDelay {
  #timer: Timer | undefined;

  constructor(
    private readonly clock: Clock,
    /** Told each measurement; false: enough for now. */
    private readonly observe: (delayMs: number) => boolean,
  ) {}

  start(): void {
    if (this.#timer === undefined) this.#arm();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #arm(): void {
    const due = this.clock.monotonic() + everyMs;
    this.#timer = this.clock.after(everyMs, () => {
      this.#timer = undefined;
      const goOn = this.observe(Math.max(0, this.clock.monotonic() - due));
      if (goOn) this.#arm();
    });
  }
}
