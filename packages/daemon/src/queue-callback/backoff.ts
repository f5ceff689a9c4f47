import type { Random } from '@millrace/kit/random';
import type { BudgetVerdict } from '../core/budget.js';

const minMs = 1_000;
const maxMs = 60_000;
const hourMs = 3_600_000;

/** Exponential backoff with 50% jitter. */
export function backoffMs(failures: number, random: Random): number {
  const maxDelayMs = Math.min(maxMs, minMs * 2 ** Math.min(failures, 16));
  return maxDelayMs / 2 + random.next() * (maxDelayMs / 2);
}

/**
 * Delay until the budget may allow a session again. The daily spend resets at midnight; the weekly
 * window slides, so it is checked every hour.
 */
export function budgetRetryMs(verdict: BudgetVerdict | undefined, now: number): number {
  const isWeekFull =
    verdict !== undefined && verdict.cap_weekly > 0 && verdict.weekly_usd >= verdict.cap_weekly;
  const isDayFull =
    verdict !== undefined && verdict.cap_daily > 0 && verdict.daily_usd >= verdict.cap_daily;
  if (isWeekFull || !isDayFull) return hourMs;
  const midnight = new Date(now);
  midnight.setHours(24, 0, 0, 0);
  return midnight.getTime() - now;
}
