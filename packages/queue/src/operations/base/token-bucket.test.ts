import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TokenBucket } from './limits.js';

function takeOne(bucket: TokenBucket, now: number): boolean {
  if (bucket.peek(1, now) === 0) return false;
  bucket.take(1);
  return true;
}

test('a second of tokens may go at once, and then one at a time', () => {
  const bucket = new TokenBucket(10, 0);
  expect(bucket.peek(50, 0)).toBe(10);
  bucket.take(10);
  expect(takeOne(bucket, 0)).toBe(false);
  expect(bucket.waitMs(0)).toBeCloseTo(100);
  expect(takeOne(bucket, 99)).toBe(false);
  expect(takeOne(bucket, 100)).toBe(true);
});

test('a token is there when its time has come, whatever fraction the clock began with', () => {
  const begun = Array.from({ length: 1_000 }, (_, i) => 1_000 + i * 59.123457);
  for (const start of begun) {
    const bucket = new TokenBucket(2, start);
    bucket.take(2);
    expect(takeOne(bucket, start + 500)).toBe(true);
    expect(takeOne(bucket, start + 500)).toBe(false);
  }
});

test('less than one a second is one every so often', () => {
  const bucket = new TokenBucket(0.5, 0);
  expect(takeOne(bucket, 0)).toBe(true);
  expect(takeOne(bucket, 1_999)).toBe(false);
  expect(takeOne(bucket, 2_000)).toBe(true);
});

test('a rate can change on the way', () => {
  const bucket = new TokenBucket(100, 0);
  bucket.setRate(5, 0);
  expect(bucket.peek(100, 0)).toBe(5);
  bucket.take(5);
  bucket.setRate(1_000, 0);
  expect(bucket.peek(100, 0)).toBe(0);
  expect(bucket.peek(100, 50)).toBe(50);
});

test('in any window no more go than its length allows and a burst', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0.1, max: 1_000, noNaN: true }),
      fc.array(fc.nat(500), { maxLength: 200 }),
      (perSecond, gapsMs) => {
        const bucket = new TokenBucket(perSecond, 0);
        let [now, taken] = [0, 0];
        for (const gapMs of gapsMs) {
          now += gapMs;
          while (takeOne(bucket, now)) taken++;
        }
        expect(taken).toBeLessThanOrEqual(Math.max(1, perSecond) + (now * perSecond) / 1000 + 1e-6);
      },
    ),
  );
});
