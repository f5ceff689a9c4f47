import type { Clock } from '@millrace/kit/clock';

/**
 * Measures how long a turn of the event loop takes from the first call it begins with: everyone
 * else who came in at the same time has waited up to that long. One measurement for each turn
 * that has a call, none while there is nothing to do.
 */
export class TurnProbe {
  #isArmed = false;

  constructor(
    private readonly clock: Clock,
    private readonly observe: (delayMs: number) => void,
  ) {}

  /** A call comes in. */
  arm(): void {
    if (this.#isArmed) return;
    this.#isArmed = true;
    const since = this.clock.monotonic();
    setImmediate(() => {
      this.#isArmed = false;
      this.observe(this.clock.monotonic() - since);
    });
  }
}
