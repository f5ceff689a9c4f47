import type { Clock } from '@millrace/kit/clock';

/**
 * Measures the duration of an event loop turn from its first call on, which is how long other calls
 * that arrived at the same time may have waited. One measurement per turn with a call; none while
 * idle.
 */
export class TurnProbe {
  #isArmed = false;

  constructor(
    private readonly clock: Clock,
    private readonly observe: (delayMs: number) => void,
  ) {}

  /** Starts a measurement unless one is running in this turn. */
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
