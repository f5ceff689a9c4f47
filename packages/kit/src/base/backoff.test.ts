import { expect, test } from 'vitest';
import { Backoff, backoffMs } from './backoff.js';
import { seededRandom } from './clock-and-random.js';

const policy = { initialMs: 50, maxMs: 2_000 };

test('backoff: doubles up to the maximum, half of it random', () => {
  const delays = [1, 2, 3, 6, 7, 100].map((failures) => backoffMs(policy, failures, 0));
  expect(delays).toEqual([25, 50, 100, 800, 1_000, 1_000]);
  expect(backoffMs(policy, 2, 0.5)).toBe(75);
  expect(backoffMs({ ...policy, multiplier: 3 }, 3, 0)).toBe(225);
});

test('backoff: adds the delay that the server requested, and begins again after a success', () => {
  const backoff = new Backoff(policy, seededRandom(7));
  for (const fullMs of [50, 100, 200]) {
    const delayMs = backoff.next(1_000) - 1_000;
    expect(delayMs).toBeGreaterThanOrEqual(fullMs / 2);
    expect(delayMs).toBeLessThan(fullMs);
  }
  backoff.reset();
  expect(backoff.next()).toBeLessThan(50);
});
