import type { DaemonSchema } from '@millrace/contract/daemon';

export type BudgetVerdict = DaemonSchema<'BudgetVerdict'>;

export interface BudgetCaps {
  /** `tokens.budget_gate`: without it nothing is ever over. */
  isOn: boolean;
  /** 0 means that there is no such cap. */
  dailyUsd: number;
  weeklyUsd: number;
}

/** What was measured, from the transcripts. */
export interface MeasuredSpend {
  dailyUsd: number;
  weeklyUsd: number;
}

/**
 * Money that was promised to a session which has not spent it yet. Without these, sessions that
 * are started at the same moment would all see the same room below the cap.
 */
export interface Reservation {
  usd: number;
}

/**
 * May another session be started? A cap is reached when what was measured and what is promised
 * come up to it. The figures of the verdict are the measured ones alone.
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
  const promised = usd < cap ? ', with what sessions under way may still spend,' : '';
  return `${what}${promised} has reached the ${which} cap`;
}

function notOver({ isOn, dailyUsd, weeklyUsd }: BudgetCaps): string {
  if (!isOn) return 'the budget gate is off';
  if (dailyUsd <= 0 && weeklyUsd <= 0) return 'there is no cap';
  return 'no cap is reached';
}
