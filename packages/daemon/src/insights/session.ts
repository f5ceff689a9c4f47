import type { SessionHistory } from './history.js';

/** A session with when it was at work, in stretches of time without overlap. */
export interface Session extends SessionHistory {
  stretches: readonly { from: number; to: number }[];
}

/** How long a session was at work: the time in which nobody spoke is not in it. */
export function workOf({ stretches }: Session): number {
  return stretches.reduce((sum, { from, to }) => sum + (to - from), 0);
}
