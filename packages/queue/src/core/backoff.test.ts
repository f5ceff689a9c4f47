import fc from 'fast-check';
import { expect, test } from 'vitest';
import { backoffMs, verdictOnFailure } from './outcome.js';
import type { TaskOptions } from './task.js';

const policy = {
  max_attempts: 15,
  initial_backoff_ms: 1_000,
  multiplier: 2,
  max_backoff_ms: 3_600_000,
  retry_statuses: [],
  dead_statuses: [],
};

test.each([
  [1, 500, 1_000],
  [2, 1_000, 2_000],
  [3, 2_000, 4_000],
  [12, 1_024_000, 2_048_000],
  [13, 1_800_000, 3_600_000],
  [1_000, 1_800_000, 3_600_000],
])('after attempt %i the delay lies between %i and %i ms', (attempt, low, high) => {
  expect(backoffMs(policy, attempt, 0)).toBe(low);
  expect(backoffMs(policy, attempt, 0.5)).toBe((low + high) / 2);
  expect(backoffMs(policy, attempt, 1 - 2 ** -53)).toBe(high);
});

test('a multiplier of one keeps the delay, and a fraction grows it slowly', () => {
  expect(backoffMs({ ...policy, multiplier: 1 }, 900, 0)).toBe(500);
  expect(backoffMs({ ...policy, multiplier: 1.5 }, 3, 0)).toBe(1_125);
});

test('the longest delay holds even where the first one is longer', () => {
  expect(backoffMs({ ...policy, initial_backoff_ms: 5_000, max_backoff_ms: 100 }, 1, 0)).toBe(50);
});

/** The delay after a failed attempt. */
function delayMs(
  failure: { retryAfterMs?: number | null; delayMs?: number },
  {
    attempt = 1,
    options,
    chance = 0,
  }: { attempt?: number; options?: TaskOptions; chance?: number } = {},
): number | undefined {
  const verdict = verdictOnFailure(
    { mayRetry: true, isDeferred: false, retryAfterMs: null, ...failure },
    { attempt, policy, options, now: 0, chance },
  );
  return 'dueAt' in verdict ? verdict.dueAt : undefined;
}

test('Retry-After raises the delay and never lowers it', () => {
  expect(delayMs({ retryAfterMs: 60_000 })).toBe(60_000);
  expect(delayMs({ retryAfterMs: 0 })).toBe(500);
  expect(delayMs({ retryAfterMs: 499 })).toBe(500);
  expect(delayMs({ retryAfterMs: null })).toBe(500);
});

test('no more than an hour of Retry-After counts', () => {
  expect(delayMs({ retryAfterMs: 86_400_000 })).toBe(3_600_000);
});

test('a delay that the handler chose replaces the backoff', () => {
  expect(delayMs({ delayMs: 7 })).toBe(7);
  expect(delayMs({ delayMs: 0 })).toBe(0);
});

test('a task may have a backoff and a number of attempts of its own', () => {
  const fixed: TaskOptions = { backoff: { kind: 'fixed', ms: 50 }, maxAttempts: 3 };
  expect([1, 2, 3].map((attempt) => delayMs({}, { attempt, options: fixed }))).toEqual([
    50,
    50,
    undefined,
  ]);
  const growing: TaskOptions = { backoff: { kind: 'exponential', ms: 50, maxMs: 150 } };
  expect([1, 2, 3].map((attempt) => delayMs({}, { attempt, options: growing }))).toEqual([
    50, 100, 150,
  ]);
  const random: TaskOptions = { backoff: { kind: 'fixed', ms: 100, jitter: 0.5 } };
  expect(delayMs({}, { options: random, chance: 0.5 })).toBe(75);
  expect(delayMs({}, { options: { maxAttempts: 20 }, attempt: 19 })).toBeGreaterThan(0);
});

test('the delay is a whole number between half and all of the full one', () => {
  const settings = fc.record({
    initial_backoff_ms: fc.integer({ min: 10, max: 604_800_000 }),
    multiplier: fc.double({ min: 1, max: 100, noNaN: true }),
    max_backoff_ms: fc.integer({ min: 10, max: 604_800_000 }),
    attempt: fc.integer({ min: 1, max: 1_000 }),
    chance: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  });
  fc.assert(
    fc.property(settings, ({ attempt, chance, ...rest }) => {
      const { initial_backoff_ms: initial, multiplier, max_backoff_ms: longest } = rest;
      const full = Math.min(longest, initial * multiplier ** (attempt - 1));
      const delay = backoffMs({ ...policy, ...rest }, attempt, chance);
      expect(Number.isInteger(delay)).toBe(true);
      expect(delay).toBeGreaterThanOrEqual(Math.floor(full / 2));
      expect(delay).toBeLessThanOrEqual(Math.ceil(full));
    }),
  );
});
