import type { Hash64 } from '../../engine/hash.js';

export interface HistoryProbe {
  /** Where both histories can be looked at: the commit before the oldest that either log has. */
  low: number;
  /** The last commit that both could have. */
  high: number;
  /** The chain of this node after a commit. */
  chainAt(seq: number): Hash64;
  /** Whether the leader has the same chain there. */
  isShared(at: { seq: number; chain: Hash64 }): Promise<boolean>;
}

/**
 * The last commit that two histories share; undefined when it lies before what their logs still
 * have. Equal chains mean equal histories up to there, so halving finds it.
 */
export async function lastCommonCommit(probe: HistoryProbe): Promise<number | undefined> {
  const ask = (seq: number) => probe.isShared({ seq, chain: probe.chainAt(seq) });
  let { low, high } = probe;
  if (high < low || !(await ask(low))) return undefined;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (await ask(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}
