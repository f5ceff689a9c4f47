import type { QueueConfig } from './queue.js';

export type RetryPolicy = QueueConfig['retry'];

/** Upper limit for the delay that a handler requests. */
export const maxRetryAfterMs = 3_600_000;

/**
 * Exponential backoff with jitter after the n-th failed attempt: half of the delay is fixed, half
 * random, so that tasks that failed together are not retried together. `chance` is in [0, 1).
 */
export function backoffMs(policy: RetryPolicy, attempt: number, chance: number): number {
  const { initial_backoff_ms: initial, multiplier, max_backoff_ms: longest } = policy;
  const full = Math.min(longest, initial * multiplier ** Math.max(0, attempt - 1));
  return Math.round(full / 2 + (full / 2) * chance);
}

/** The backoff, raised to the delay that the handler requested. */
export function retryDelayMs(
  policy: RetryPolicy,
  attempt: number,
  chance: number,
  retryAfterMs: number | null,
): number {
  const requestedMs = Math.min(retryAfterMs ?? 0, maxRetryAfterMs);
  return Math.max(backoffMs(policy, attempt, chance), requestedMs);
}
