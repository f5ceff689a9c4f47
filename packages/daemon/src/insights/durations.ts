import type { DaemonSchema } from '@millrace/contract/daemon';

type DurationStats = DaemonSchema<'DurationStats'>;

export function durationStats(key: string, durations: readonly number[]): DurationStats {
  const sorted = durations.toSorted((a, b) => a - b);
  return {
    key,
    sessions: sorted.length,
    p50_ms: rankOf(sorted, 0.5),
    p90_ms: rankOf(sorted, 0.9),
    max_ms: sorted.at(-1) ?? null,
    total_ms: sorted.reduce((sum, each) => sum + each, 0),
  };
}

/** Nearest-rank percentile: always one of the durations. */
function rankOf(sorted: readonly number[], share: number): number | null {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? null;
}
