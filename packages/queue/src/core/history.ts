/** What happened in a queue during one step of its history. */
export interface HistoryPoint {
  submitted: number;
  succeeded: number;
  /** Attempts. */
  failed: number;
  /** Tasks, cancelled ones included. */
  dead: number;
  cancelled: number;
  /** At the end of the step; null: unknown. */
  pending: number | null;
  inFlight: number | null;
  wait: Buckets;
  run: Buckets;
}

/** Counted since the queue was created. */
export interface HistoryTotals {
  succeeded: number;
  failed: number;
  dead: number;
}

/** One row of history in a store: what one run of a server counted in one step. */
export interface HistoryRow {
  queue: string;
  stepS: number;
  /** Start of the step. */
  at: number;
  /** The run of the server. */
  instance: string;
  point: HistoryPoint;
}

/** Steps and the retention of each, finest first. */
export const historySteps = [
  { name: '10s', stepS: 10, retentionMs: 2 * 3_600_000 },
  { name: '1m', stepS: 60, retentionMs: 48 * 3_600_000 },
  { name: '15m', stepS: 900, retentionMs: 30 * 86_400_000 },
] as const;

export const noTotals: HistoryTotals = { succeeded: 0, failed: 0, dead: 0 };

export function emptyPoint(): HistoryPoint {
  return {
    submitted: 0,
    succeeded: 0,
    failed: 0,
    dead: 0,
    cancelled: 0,
    pending: null,
    inFlight: null,
    wait: {},
    run: {},
  };
}

/** Adds a point to another; gauges are taken from the later one. */
export function addPoint(sum: HistoryPoint, point: HistoryPoint): void {
  sum.submitted += point.submitted;
  sum.succeeded += point.succeeded;
  sum.failed += point.failed;
  sum.dead += point.dead;
  sum.cancelled += point.cancelled;
  sum.pending = point.pending ?? sum.pending;
  sum.inFlight = point.inFlight ?? sum.inFlight;
  Histogram.merge(sum.wait, point.wait);
  Histogram.merge(sum.run, point.run);
}

export function addTotals(sum: HistoryTotals, more: HistoryTotals): HistoryTotals {
  return {
    succeeded: sum.succeeded + more.succeeded,
    failed: sum.failed + more.failed,
    dead: sum.dead + more.dead,
  };
}

/** Start of the step that contains a time. */
export function stepAt(time: number, stepS: number): number {
  return Math.floor(time / (stepS * 1000)) * stepS * 1000;
}

/** Key of a row of the history; without an instance, where the rows of a time begin. */
export function historyRowKey(stepS: number, at: number, instance = ''): string {
  const time = Math.max(0, Math.floor(at));
  const start = `${String(stepS).padStart(5, '0')} ${String(time).padStart(15, '0')}`;
  return instance === '' ? start : `${start} ${instance}`;
}

/** Counts by bucket number. */
export type Buckets = Record<number, number>;

/** Buckets per doubling: a percentile is off by at most 5 %. */
const perDoubling = 8;

/** Histograms of durations with logarithmic buckets, which can be added up. */
export const Histogram = {
  add(buckets: Buckets, ms: number): void {
    const bucket = Math.floor(perDoubling * Math.log2(Math.max(0, ms) + 1));
    buckets[bucket] = (buckets[bucket] ?? 0) + 1;
  },

  merge(sum: Buckets, more: Buckets): void {
    for (const [bucket, count] of Object.entries(more)) {
      sum[Number(bucket)] = (sum[Number(bucket)] ?? 0) + count;
    }
  },

  /** In milliseconds; null without samples. */
  percentile(buckets: Buckets, share: number): number | null {
    // Keys that are whole numbers are in ascending order.
    const entries = Object.entries(buckets);
    const total = entries.reduce((sum, [, count]) => sum + count, 0);
    let left = Math.ceil(total * share);
    for (const [bucket, count] of entries) {
      left -= count;
      if (left <= 0) return Math.round(2 ** ((Number(bucket) + 0.5) / perDoubling) - 1);
    }
    return null;
  },
};
