import type { Hash64 } from '@millrace/engine/value/hash';

export interface HistoryProbe {
  /** Lower bound: the commit before the oldest one in both logs. */
  low: number;
  /** Upper bound: the last commit that both may have. */
  high: number;
  /** The chain hash of this node after a commit. */
  chainAt(seq: number): Hash64;
  /** Whether the leader has the same chain hash at this commit. */
  isShared(at: { seq: number; chain: Hash64 }): Promise<boolean>;
}

/**
 * The last common commit of two histories; undefined when it is older than their logs. Equal chain
 * hashes mean equal histories, so binary search finds it.
 */
export async function lastCommonCommit(probe: HistoryProbe): Promise<number | undefined> {
  const isSharedAt = (seq: number) => probe.isShared({ seq, chain: probe.chainAt(seq) });
  let { low, high } = probe;
  if (high < low || !(await isSharedAt(low))) return undefined;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (await isSharedAt(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}
