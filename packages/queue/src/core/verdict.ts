import { retryDelayMs, type RetryPolicy } from './backoff.js';
import type { DeadReason } from './task.js';

/** How a claim ends. */
export type Verdict =
  | { kind: 'succeeded' }
  | { kind: 'retry'; dueAt: number }
  | { kind: 'dead'; reason: DeadReason }
  /** Returned to the queue: the attempt does not count. */
  | { kind: 'handed_back'; dueAt: number };

export interface Failure {
  /** False: the handler forbids another attempt. */
  mayRetry: boolean;
  /** True: the handler could not start the work yet, so the attempt does not count. */
  isDeferred: boolean;
  /** Delay requested by the handler. */
  retryAfterMs: number | null;
}

export interface FailureContext {
  /** The number of the attempt that failed. */
  attempt: number;
  policy: RetryPolicy;
  now: number;
  /** From 0 up to 1. */
  chance: number;
}

/** Decides between retry, hand back and dead letter after a failed attempt. */
export function verdictOnFailure(failure: Failure, about: FailureContext): Verdict {
  const { attempt, policy, now, chance } = about;
  if (!failure.mayRetry) return { kind: 'dead', reason: 'PERMANENT' };
  if (!failure.isDeferred && attempt >= policy.max_attempts) {
    return { kind: 'dead', reason: 'ATTEMPTS_EXHAUSTED' };
  }
  const delayMs = retryDelayMs(policy, attempt, chance, failure.retryAfterMs);
  return { kind: failure.isDeferred ? 'handed_back' : 'retry', dueAt: now + delayMs };
}

/** An expired lease counts as a failed attempt, so that a poison task ends in the DLQ. */
export function verdictOnEndedLease(about: FailureContext): Verdict {
  return verdictOnFailure({ mayRetry: true, isDeferred: false, retryAfterMs: null }, about);
}
