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

interface CachedReading extends Observation {
  /** Monotonic time, because the wall clock may be set meanwhile. */
  readonly freshUntil: number;
  readonly closedUntil: number;
}

const freshMs = 60_000;

/**
 * The last reading of each backend. Failures are cached as long as successes: a failing provider
 * must not be called more often than a healthy one.
 */
export class UsageMemory {
  readonly #cache = new Map<string, CachedReading>();
  readonly #good = new Map<string, LastGood>();

  constructor(private readonly clock: Clock) {}

  /** The reading that is still valid. A refresh ignores freshness, not the provider's wait. */
  cached(id: string, refresh: boolean): Observation | undefined {
    const entry = this.#cache.get(id);
    if (!entry) return undefined;
    const now = this.clock.monotonic();
    const until = refresh ? entry.closedUntil : Math.max(entry.freshUntil, entry.closedUntil);
    return now < until ? entry : undefined;
  }

  save(id: string, reading: Reading): Observation {
    const now = this.clock.monotonic();
    const waitMs = reading.ok ? 0 : (reading.retryAfterMs ?? 0);
    const observedAt = this.clock.now();
    const entry = { reading, observedAt, freshUntil: now + freshMs, closedUntil: now + waitMs };
    this.#cache.set(id, entry);
    if (reading.ok) this.#good.set(id, { reading, observedAt });
    return entry;
  }

  /** The last reading, fresh or not. */
  last(id: string): Observation | undefined {
    return this.#cache.get(id);
  }

  lastGood(id: string): LastGood | undefined {
    return this.#good.get(id);
  }
}
