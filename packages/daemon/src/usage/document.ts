import type { DaemonSchema } from '@millrace/contract/daemon';
import { formatTimestamp } from '@millrace/kit/units';
import type { Clock } from '@millrace/kit/clock';
import {
  failed,
  windowOf,
  type Failed,
  type UsageAdapter,
  type UsageRow,
  type UsageStatus,
  type UsageWindow,
  type Reading,
  type Seen,
} from './adapter.js';

export type UsageDocument = DaemonSchema<'UsageDocument'>;
type BackendUsage = DaemonSchema<'BackendUsage'>;
type UsageLimit = DaemonSchema<'UsageLimit'>;

export function documentOf(backends: BackendUsage[], now: number): UsageDocument {
  return { schema_version: 1, generated_at: formatTimestamp(now), backends };
}

/** The entry of a backend whose provider has no adapter. */
export function unsupportedEntry(row: UsageRow): BackendUsage {
  const failure = failed('unsupported', 'there is no way to ask this provider', {
    wasRequested: false,
  });
  return { ...about(row), ...failureOf(failure), usage: [], observed_at: null, cached: false };
}

export interface EntryParts {
  readonly row: UsageRow;
  readonly adapter: UsageAdapter;
  readonly observation: Observation;
  readonly cached: boolean;
  readonly lastGood: LastGood | undefined;
  /** When a window will be full; null: unknown, or not before its reset. */
  readonly fullAt: (window: UsageWindow) => number | null;
}

export function entryOf(parts: EntryParts): BackendUsage {
  const { row, adapter, observation, cached, lastGood } = parts;
  const { reading, observedAt } = observation;
  if (reading.ok) {
    return {
      ...about(row),
      status: statusOf(reading.windows),
      usage: limitsOf(row.id, reading.windows, parts.fullAt),
      observed_at: formatTimestamp(observedAt),
      cached,
    };
  }
  return {
    ...about(row),
    ...failureOf(asSeenFrom(row, reading)),
    // Earlier values are shown in addition to these rows, never in place of them.
    usage: limitsOf(
      row.id,
      adapter.windows.map((each) => windowOf(each)),
    ),
    observed_at: reading.wasRequested ? formatTimestamp(observedAt) : null,
    cached,
    ...(lastGood && {
      last_good: {
        observed_at: formatTimestamp(lastGood.observedAt),
        usage: limitsOf(row.id, lastGood.reading.windows),
      },
    }),
  };
}

function about({ id, installed, enabled }: UsageRow) {
  return { id, tier: 'subscription', installed, enabled } as const;
}

function failureOf({ status, error }: Failed): { status: UsageStatus; error: string } {
  return { status, error };
}

/** A missing CLI is reported as not installed rather than as not logged in. */
function asSeenFrom(row: UsageRow, failure: Failed): Failed {
  if (row.installed || failure.wasRequested || failure.status !== 'unauthenticated') return failure;
  return failed('not_installed', 'the command line is not installed', { wasRequested: false });
}

/** `ok` only while every window that is known is below its cap. */
function statusOf(windows: readonly UsageWindow[]): UsageStatus {
  return windows.some(({ usedPercent }) => (usedPercent ?? 0) >= 100) ? 'rate_limited' : 'ok';
}

function limitsOf(
  backend: string,
  windows: readonly UsageWindow[],
  fullAt: EntryParts['fullAt'] = () => null,
): UsageLimit[] {
  const limits = windows.map((window): UsageLimit => {
    const { scope, label, usedPercent, resetsAt, modelFamilies, models } = window;
    const full = fullAt(window);
    return {
      id: `${backend}:${scope}`,
      scope,
      label,
      used_percent: usedPercent,
      resets_at: resetsAt === null ? null : formatTimestamp(resetsAt),
      model_families: modelFamilies === null ? null : [...modelFamilies],
      models: models === null ? null : [...models],
      forecast: full === null ? null : { full_at: formatTimestamp(full) },
    };
  });
  return limits.sort((a, b) => (a.id < b.id ? -1 : 1));
}

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

  readings(): [backend: string, LastGood][] {
    return [...this.#good];
  }

  lastGood(id: string): LastGood | undefined {
    return this.#good.get(id);
  }
}
