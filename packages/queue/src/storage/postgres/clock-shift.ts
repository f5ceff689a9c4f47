import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';

/** A smaller difference is ignored: clocks that are synchronised are closer. */
const toleranceMs = 1_000;
/** A measurement with a longer round trip is discarded. */
const maxRoundTripMs = 2_000;

/**
 * How far the clock of the database is ahead of this machine's; 0 if they agree. Leases and due times
 * use the clock of the database, so that all servers agree on them even if one has a wrong clock.
 */
export class ClockShift {
  #shiftMs = 0;

  constructor(
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  get ms(): number {
    return this.#shiftMs;
  }

  /** Measures the difference by the time that the database returns. */
  async measure(readTime: () => Promise<number>): Promise<void> {
    const sentAt = this.clock.monotonic();
    const time = await readTime();
    const tripMs = this.clock.monotonic() - sentAt;
    if (tripMs > maxRoundTripMs) return;
    const shiftMs = Math.round(time + tripMs / 2 - this.clock.now());
    const isRight = Math.abs(shiftMs) < toleranceMs;
    if (isRight ? this.#shiftMs === 0 : Math.abs(shiftMs - this.#shiftMs) < toleranceMs) return;
    this.#shiftMs = isRight ? 0 : shiftMs;
    const fields = { ahead_ms: -shiftMs };
    if (isRight) this.log.info(fields, 'clock of this machine agrees with PostgreSQL again');
    else this.log.warn(fields, 'clock of this machine differs from PostgreSQL: set it right');
  }
}
