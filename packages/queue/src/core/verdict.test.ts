import { expect, test } from 'vitest';
import { verdictOnEndedLease, verdictOnFailure } from './outcome.js';

const policy = {
  max_attempts: 3,
  initial_backoff_ms: 1_000,
  multiplier: 2,
  max_backoff_ms: 60_000,
  retry_statuses: [],
  dead_statuses: [],
};
const about = (attempt: number) => ({ attempt, policy, now: 10_000, chance: 0 });
const failure = { mayRetry: true, isDeferred: false, retryAfterMs: null };

test('a failure is retried after the backoff of its attempt', () => {
  expect(verdictOnFailure(failure, about(1))).toEqual({ kind: 'retry', dueAt: 10_500 });
  expect(verdictOnFailure(failure, about(2))).toEqual({ kind: 'retry', dueAt: 11_000 });
});

test('the delay requested by the handler raises the backoff', () => {
  const withRetryAfter = { ...failure, retryAfterMs: 9_000 };
  expect(verdictOnFailure(withRetryAfter, about(1))).toEqual({ kind: 'retry', dueAt: 19_000 });
});

test('the last attempt that fails ends the task, also when the limit was lowered since', () => {
  const dead = { kind: 'dead', reason: 'ATTEMPTS_EXHAUSTED' };
  expect(verdictOnFailure(failure, about(3))).toEqual(dead);
  expect(verdictOnFailure(failure, about(9))).toEqual(dead);
  expect(verdictOnEndedLease(about(3))).toEqual(dead);
});

test('a failure that forbids a retry ends the task at once', () => {
  const final = { mayRetry: false, isDeferred: true, retryAfterMs: 1_000 };
  expect(verdictOnFailure(final, about(1))).toEqual({ kind: 'dead', reason: 'PERMANENT' });
  expect(verdictOnFailure(final, about(3))).toEqual({ kind: 'dead', reason: 'PERMANENT' });
});

test('what is deferred is handed back, also by the last attempt', () => {
  const deferred = { mayRetry: true, isDeferred: true, retryAfterMs: 9_000 };
  expect(verdictOnFailure(deferred, about(1))).toEqual({ kind: 'handed_back', dueAt: 19_000 });
  expect(verdictOnFailure(deferred, about(3))).toEqual({ kind: 'handed_back', dueAt: 19_000 });
});

test('a lease that ran out counts as a failed attempt', () => {
  expect(verdictOnEndedLease(about(1))).toEqual({ kind: 'retry', dueAt: 10_500 });
});
