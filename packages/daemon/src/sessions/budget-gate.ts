import type { DaemonSchema } from '@millrace/contract/daemon';
import { budgetVerdict, type BudgetCaps, type Reservation } from '../core/budget.js';
import { fail } from '../core/refusals.js';
import { isEnded } from '../core/session.js';
import type { Session } from './port.js';

type Rollup = DaemonSchema<'SpendRollup'>;

export interface BudgetParts {
  caps: () => BudgetCaps;
  /** `tokens.budget_basis`: which figure a cap is compared with. */
  basis: () => BudgetBasis;
  spend: () => Promise<Rollup>;
  sessions: () => readonly Session[];
  /** Assumed cost of a session while no session's cost is known. */
  assumedSessionUsd: () => number;
}

export type BudgetBasis = 'greater' | 'contract' | 'exact';

/**
 * Checks the budget caps before a session is started. Running sessions that are not in the figures
 * yet count with the average cost of sessions so far, or an assumed cost on a fresh system, so that
 * many sessions started at once do not all pass below the cap.
 */
export class BudgetGate {
  readonly #parts: BudgetParts;
  /** Sessions that have passed the gate and are not in the store yet. */
  #promised = 0;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(parts: BudgetParts) {
    this.#parts = parts;
  }

  /**
   * Runs work one after the other; refuses with the figures when a cap is reached. The reserved
   * cost counts until the work is done and the session itself counts.
   */
  async pass<Result>(isForced: boolean, work: () => Promise<Result>): Promise<Result> {
    if (!isForced) await this.#inTurn(() => this.#check());
    else this.#promised++;
    try {
      return await work();
    } finally {
      this.#promised--;
    }
  }

  async #check(): Promise<void> {
    const { spend } = this.#parts;
    const caps = this.#parts.caps();
    const hasCap = caps.isOn && (caps.dailyUsd > 0 || caps.weeklyUsd > 0);
    if (hasCap) {
      const rollup = await spend();
      const spent = {
        dailyUsd: this.#measured(rollup.daily_usd, rollup.daily_exact_usd),
        weeklyUsd: this.#measured(rollup.weekly_usd, rollup.weekly_exact_usd),
      };
      const verdict = budgetVerdict(spent, caps, this.#reservations(rollup));
      if (verdict.over) throw refusal(verdict);
    }
    this.#promised++;
  }

  #reservations({ by_agent }: Rollup): Reservation[] {
    const costs = by_agent
      .map((row) => this.#measured(row.usd ?? 0, row.exact_usd))
      .filter((cost) => cost > 0);
    const total = costs.reduce((sum, cost) => sum + cost, 0);
    const usd = costs.length === 0 ? this.#parts.assumedSessionUsd() : total / costs.length;
    const counted = new Set(by_agent.map(({ key }) => key));
    const waiting = this.#parts
      .sessions()
      .filter((session) => !isEnded(session) && !counted.has(session.backend_session_id ?? ''));
    return Array.from({ length: waiting.length + this.#promised }, () => ({ usd }));
  }

  /** If no model has an exact price, the rates of its family are used on every basis. */
  #measured(usd: number, exactUsd: number | null | undefined): number {
    const basis = this.#parts.basis();
    if (basis === 'contract' || typeof exactUsd !== 'number') return usd;
    return basis === 'exact' ? exactUsd : Math.max(usd, exactUsd);
  }

  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const turn = this.#turn.then(work, work);
    this.#turn = turn;
    return turn;
  }
}

function refusal(verdict: DaemonSchema<'BudgetVerdict'>): Error {
  const { daily_usd, weekly_usd, cap_daily, cap_weekly, reason } = verdict;
  const figures = [
    cap_daily > 0 ? `$${daily_usd.toFixed(2)} of $${cap_daily.toFixed(2)} today` : '',
    cap_weekly > 0 ? `$${weekly_usd.toFixed(2)} of $${cap_weekly.toFixed(2)} in 7 days` : '',
  ].filter((text) => text !== '');
  const sentence = `${reason[0]!.toUpperCase()}${reason.slice(1)}`;
  return fail(
    'BUDGET_CONFIRMATION_REQUIRED',
    `${sentence} (${figures.join(', ')}): repeat with \`force\` to go on.`,
    { members: { confirmation_required: true, gate: 'budget', verdict } },
  );
}
