import fc from 'fast-check';
import { expect, test } from 'vitest';
import { mayStart, nextStartAt, type Starts, withStarts } from './pacing.js';

test('without a rate any number may start', () => {
  expect(mayStart([[0, 1e9]], 0, 0)).toBe(Infinity);
});

test('no second has more starts than the limit, whatever the requests', () => {
  const requests = fc.array(fc.tuple(fc.nat(400), fc.nat(9)), { maxLength: 60 });
  fc.assert(
    fc.property(requests, fc.integer({ min: 1, max: 9 }), (list, perSecond) => {
      let starts: Starts = [];
      let now = 1_000_000;
      const started: number[] = [];
      for (const [waitMs, wanted] of list) {
        now += waitMs;
        const count = Math.min(wanted, mayStart(starts, now, perSecond));
        if (count === 0) continue;
        starts = withStarts(starts, now, count, perSecond);
        for (let i = 0; i < count; i++) started.push(now);
      }
      for (const at of started) {
        const inSecond = started.filter((other) => other >= at && other < at + 1_000);
        expect(inSecond.length).toBeLessThanOrEqual(perSecond);
      }
      expect(starts.length).toBeLessThanOrEqual(52);
    }),
  );
});

test('after a second of rest all may start again', () => {
  const starts = withStarts([], 5_001, 3, 3);
  expect(mayStart(starts, 5_002, 3)).toBe(0);
  expect(mayStart(starts, 6_020, 3)).toBe(3);
});

test('half a task a second is one in two seconds, one and a half are three', () => {
  const one = withStarts([], 10_000, 1, 0.5);
  expect(mayStart(one, 11_500, 0.5)).toBe(0);
  expect(mayStart(one, 12_000, 0.5)).toBe(1);
  const two = withStarts([], 10_000, 2, 1.5);
  expect(mayStart(two, 11_300, 1.5)).toBe(0);
  expect(mayStart(two, 11_340, 1.5)).toBe(2);
});

test('the next start is exact to the millisecond', () => {
  for (const perSecond of [0.5, 1, 1.5, 3, 3.3]) {
    const starts = withStarts([], 5_007, Math.ceil(perSecond), perSecond);
    const at = nextStartAt(starts, 5_008, perSecond)!;
    expect(mayStart(starts, at - 1, perSecond)).toBe(0);
    expect(mayStart(starts, at, perSecond)).toBeGreaterThan(0);
    expect(nextStartAt(starts, at, perSecond)).toBeUndefined();
  }
});
