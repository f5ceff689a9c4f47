import type { Verdict } from '../storage/task-store.js';
import { retryDelayMs, type RetryPolicy } from './backoff.js';

export interface Failure {
  /** False: whoever did the work forbids another attempt. */
  mayRetry: boolean;
  /** True: the work could not be begun yet, so the attempt does not count. */
  isDeferred: boolean;
  /** What the handler asked for. */
  retryAfterMs: number | null;
}

export interface Circumstances {
  /** The number of the attempt that failed. */
  attempt: number;
  policy: RetryPolicy;
  now: number;
  /** From 0 up to 1. */
  chance: number;
}

/** What becomes of a task whose attempt failed. */
export function verdictOnFailure(failure: Failure, about: Circumstances): Verdict {
  const { attempt, policy, now, chance } = about;
  if (!failure.mayRetry) return { kind: 'dead', reason: 'PERMANENT' };
  if (!failure.isDeferred && attempt >= policy.max_attempts) {
    return { kind: 'dead', reason: 'ATTEMPTS_EXHAUSTED' };
  }
  const delayMs = retryDelayMs(policy, attempt, chance, failure.retryAfterMs);
  return { kind: failure.isDeferred ? 'handed_back' : 'retry', dueAt: now + delayMs };
}

/** A lease that ran out counts as a failed attempt, so that a poison task ends in the DLQ. */
export function verdictOnEndedLease(about: Circumstances): Verdict {
  return verdictOnFailure({ mayRetry: true, isDeferred: false, retryAfterMs: null }, about);
}
