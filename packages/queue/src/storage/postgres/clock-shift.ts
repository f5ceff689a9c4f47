import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';

/** Clocks that are kept right are nearer than this; they are left alone, to the millisecond. */
const rightWithinMs = 1_000;
/** An answer that took this long says too little. */
const longestTripMs = 2_000;

/**
 * How far the database's clock is ahead of this machine's. Leases and due times go by the
 * database's, so that they end for all servers at the same moment, however wrong the clock of one of
 * them is. 0 for a clock that is right.
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

  /** Takes over what the database answers to the question of the time. */
  async measure(readTime: () => Promise<number>): Promise<void> {
    const asked = this.clock.monotonic();
    const time = await readTime();
    const tripMs = this.clock.monotonic() - asked;
    if (tripMs > longestTripMs) return;
    const shiftMs = Math.round(time + tripMs / 2 - this.clock.now());
    const isRight = Math.abs(shiftMs) < rightWithinMs;
    if (isRight ? this.#shiftMs === 0 : Math.abs(shiftMs - this.#shiftMs) < rightWithinMs) return;
    this.#shiftMs = isRight ? 0 : shiftMs;
    const fields = { ahead_ms: -shiftMs };
    if (isRight) this.log.info(fields, 'the clock of this machine is that of PostgreSQL again');
    else this.log.warn(fields, 'the clock of this machine is not that of PostgreSQL: set it right');
  }
}
