import { backoffMs as backoffDelayMs } from '@millrace/kit/backoff';
import type { QueueConfig } from './queue.js';

export type RetryPolicy = QueueConfig['retry'];

/** Upper limit for the delay that a handler requests. */
export const maxRetryAfterMs = 3_600_000;

/** Exponential backoff after the n-th failed attempt. `chance` is in [0, 1). */
export function backoffMs(policy: RetryPolicy, attempt: number, chance: number): number {
  const { initial_backoff_ms: initialMs, multiplier, max_backoff_ms: maxMs } = policy;
  return Math.round(backoffDelayMs({ initialMs, multiplier, maxMs }, attempt, chance));
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
