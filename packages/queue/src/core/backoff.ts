import type { QueueConfig } from './queue.js';

export type RetryPolicy = QueueConfig['retry'];

/** A handler may ask for a longer pause, but not for a longer one than this. */
export const maxRetryAfterMs = 3_600_000;

/**
 * How long a task waits after its n-th failed attempt: one half is fixed, the other random, so that
 * tasks that failed together do not come back together. `chance` is from 0 up to 1.
 */
export function backoffMs(policy: RetryPolicy, attempt: number, chance: number): number {
  const { initial_backoff_ms: initial, multiplier, max_backoff_ms: longest } = policy;
  const full = Math.min(longest, initial * multiplier ** Math.max(0, attempt - 1));
  return Math.round(full / 2 + (full / 2) * chance);
}

/** The same, raised to what the handler asked for. */
export function retryDelayMs(
  policy: RetryPolicy,
  attempt: number,
  chance: number,
  retryAfterMs: number | null,
): number {
  const requestedMs = Math.min(retryAfterMs ?? 0, maxRetryAfterMs);
  return Math.max(backoffMs(policy, attempt, chance), requestedMs);
}
