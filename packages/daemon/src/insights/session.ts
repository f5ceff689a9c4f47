import type { SessionHistory } from '../spend/session-history.js';

/** A session with its activity as intervals without overlap. */
export interface Session extends SessionHistory {
  stretches: readonly { from: number; to: number }[];
  /** Its name, if it has one. */
  name?: string;
  /** Whether it has ended, if known; otherwise inferred from inactivity. */
  hasEnded?: boolean;
  /** Whether its activity is known (default: true). */
  isTimed?: boolean;
}

/** Active time of a session, without idle time. */
export function workOf({ stretches }: Session): number {
  return stretches.reduce((sum, { from, to }) => sum + (to - from), 0);
}
