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
