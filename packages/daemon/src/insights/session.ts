import type { SessionHistory } from '../spend/session-history.js';

/** A session with when it was at work, in stretches of time without overlap. */
export interface Session extends SessionHistory {
  stretches: readonly { from: number; to: number }[];
  /** What it is called, where somebody has named it. */
  name?: string;
  /** Whether it is over, where that is known; where not, its silence tells. */
  hasEnded?: boolean;
  /** Whether it is known when it was at work; left out, it is. */
  isTimed?: boolean;
}

/** How long a session was at work: the time in which nobody spoke is not in it. */
export function workOf({ stretches }: Session): number {
  return stretches.reduce((sum, { from, to }) => sum + (to - from), 0);
}
