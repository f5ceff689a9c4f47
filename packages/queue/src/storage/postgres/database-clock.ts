import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';

/** A smaller difference is ignored: clocks that are synchronised are closer. */
const toleranceMs = 1_000;
/** A measurement with a longer round trip is discarded. */
const maxRoundTripMs = 2_000;

/**
 * Shows the time of the database, so that all servers agree on leases and due times even if the
 * clock of one machine is wrong. Durations and timers are those of the machine.
 */
export class DatabaseClock implements Clock {
  /** How far the database is ahead of this machine; 0 if they agree. */
  #shiftMs = 0;

  constructor(
    private readonly machine: Clock,
    private readonly log: Log,
  ) {}

  readonly now: Clock['now'] = () => this.machine.now() + this.#shiftMs;
  readonly monotonic: Clock['monotonic'] = () => this.machine.monotonic();
  readonly after: Clock['after'] = (delayMs, run) => this.machine.after(delayMs, run);
  readonly sleep: Clock['sleep'] = (delayMs, signal) => this.machine.sleep(delayMs, signal);

  /** Measures the difference by the time that the database returns. */
  async measure(readTime: () => Promise<number>): Promise<void> {
    const sentAt = this.machine.monotonic();
    const time = await readTime();
    const tripMs = this.machine.monotonic() - sentAt;
    if (tripMs > maxRoundTripMs) return;
    const shiftMs = Math.round(time + tripMs / 2 - this.machine.now());
    const isRight = Math.abs(shiftMs) < toleranceMs;
    if (isRight ? this.#shiftMs === 0 : Math.abs(shiftMs - this.#shiftMs) < toleranceMs) return;
    this.#shiftMs = isRight ? 0 : shiftMs;
    const fields = { ahead_ms: -shiftMs };
    if (isRight) this.log.info(fields, 'clock of this machine agrees with PostgreSQL again');
    else this.log.warn(fields, 'clock of this machine differs from PostgreSQL: set it right');
  }
}
