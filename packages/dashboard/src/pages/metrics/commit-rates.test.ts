import { expect, test } from 'vitest';
import { commitRates, withSample } from './commit-rates.js';

const sample = (time: number, seq: number) => ({ time, seq, records: 0 });

test('commitRates: per second, unknown at the start, after a gap and after a restore', () => {
  const samples = [sample(0, 10), sample(5, 60), sample(10, 60), sample(200, 99), sample(205, 3)];
  expect(commitRates(samples)).toEqual([null, 10, 0, null, null]);
});

test('withSample: drops a repeated reading and keeps the newest', () => {
  const one = [sample(1, 1)];
  expect(withSample(one, sample(1, 1))).toBe(one);
  const many = Array.from({ length: 720 }, (_, time) => sample(time, time));
  expect(withSample(many, sample(720, 720))[0]!.time).toBe(1);
});
