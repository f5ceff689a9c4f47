import type { Clock } from '@millrace/kit/clock';
import type { Reading, Seen } from './adapter.js';

/** A reading with its time. */
export interface Observation {
  readonly reading: Reading;
  /** Milliseconds since the epoch. */
  readonly observedAt: number;
}

export interface LastGood {
  readonly reading: Seen;
  readonly observedAt: number;
}

interface Kept extends Observation {
  /** On the monotonic clock: the machine's time may be set while we wait. */
  readonly freshUntil: number;
  readonly closedUntil: number;
}

const freshMs = 60_000;

/**
 * What was last read of each backend. A failure is kept as long as a success: a provider in
 * trouble must not be asked more often than one that is well.
 */
export class UsageMemory {
  readonly #kept = new Map<string, Kept>();
  readonly #good = new Map<string, LastGood>();

  constructor(private readonly clock: Clock) {}

  /** What may stand for a new reading; a refresh passes over freshness, not a provider's wait. */
  recall(id: string, refresh: boolean): Observation | undefined {
    const kept = this.#kept.get(id);
    if (!kept) return undefined;
    const now = this.clock.monotonic();
    const until = refresh ? kept.closedUntil : Math.max(kept.freshUntil, kept.closedUntil);
    return now < until ? kept : undefined;
  }

  keep(id: string, reading: Reading): Observation {
    const now = this.clock.monotonic();
    const waitMs = reading.ok ? 0 : (reading.retryAfterMs ?? 0);
    const observedAt = this.clock.now();
    const kept = { reading, observedAt, freshUntil: now + freshMs, closedUntil: now + waitMs };
    this.#kept.set(id, kept);
    if (reading.ok) this.#good.set(id, { reading, observedAt });
    return kept;
  }

  /** Whatever was read last, fresh or not. */
  last(id: string): Observation | undefined {
    return this.#kept.get(id);
  }

  lastGood(id: string): LastGood | undefined {
    return this.#good.get(id);
  }
}
