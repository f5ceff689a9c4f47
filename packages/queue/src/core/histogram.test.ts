import { expect, test } from 'vitest';
import { Histogram, type Buckets } from './history.js';

test('percentiles are within 5 % of the exact ones', () => {
  const buckets: Buckets = {};
  for (let ms = 1; ms <= 10_000; ms++) Histogram.add(buckets, ms);
  for (const share of [0.5, 0.95, 0.99]) {
    const found = Histogram.percentile(buckets, share)!;
    expect(Math.abs(found / (10_000 * share) - 1)).toBeLessThan(0.05);
  }
});

test('histograms can be added up', () => {
  const [all, one, other]: Buckets[] = [{}, {}, {}];
  for (const [ms, part] of [
    [0, one],
    [3, other],
    [3, one],
    [900, other],
  ] as const) {
    Histogram.add(all!, ms);
    Histogram.add(part!, ms);
  }
  Histogram.merge(one!, other!);
  expect(one).toEqual(all);
});

test('there is no percentile without samples', () => {
  expect(Histogram.percentile({}, 0.5)).toBeNull();
  expect(Histogram.percentile({ 0: 1 }, 0.99)).toBe(0);
});
