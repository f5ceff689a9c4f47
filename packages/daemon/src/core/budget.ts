import type { DaemonSchema } from '@millrace/contract/daemon';

export type BudgetVerdict = DaemonSchema<'BudgetVerdict'>;

export interface BudgetCaps {
  /** `tokens.budget_gate`: when off, no cap applies. */
  isOn: boolean;
  /** 0 means that there is no such cap. */
  dailyUsd: number;
  weeklyUsd: number;
}

/** Spend measured from transcripts. */
export interface MeasuredSpend {
  dailyUsd: number;
  weeklyUsd: number;
}

/**
 * Expected cost of a session that has not reported spend yet. Without reservations, sessions
 * started at the same moment would all pass below the cap.
 */
export interface Reservation {
  usd: number;
}

/**
 * Decides whether another session may start. A cap is reached when measured spend plus
 * reservations reach it. The verdict reports measured spend only.
 */
export function budgetVerdict(
  spent: MeasuredSpend,
  caps: BudgetCaps,
  reservations: readonly Reservation[] = [],
): BudgetVerdict {
  const reserved = reservations.reduce((sum, { usd }) => sum + usd, 0);
  const reached = [
    reasonOf("today's spend", 'daily', spent.dailyUsd, reserved, caps.dailyUsd),
    reasonOf('the spend of the last 7 days', 'weekly', spent.weeklyUsd, reserved, caps.weeklyUsd),
  ].filter((reason) => reason !== undefined);
  const isOver = caps.isOn && reached.length > 0;
  return {
    over: isOver,
    daily_usd: spent.dailyUsd,
    weekly_usd: spent.weeklyUsd,
    cap_daily: caps.dailyUsd,
    cap_weekly: caps.weeklyUsd,
    reason: isOver ? reached.join(', and ') : notOver(caps),
  };
}

function reasonOf(
  what: string,
  which: string,
  usd: number,
  reserved: number,
  cap: number,
): string | undefined {
  if (cap <= 0 || usd + reserved < cap) return undefined;
  const promised = usd < cap ? ', including the expected cost of running sessions,' : '';
  return `${what}${promised} has reached the ${which} cap`;
}

function notOver({ isOn, dailyUsd, weeklyUsd }: BudgetCaps): string {
  if (!isOn) return 'the budget gate is off';
  if (dailyUsd <= 0 && weeklyUsd <= 0) return 'there is no cap';
  return 'no cap is reached';
}
