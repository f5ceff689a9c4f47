import type { Tables } from './tables.js';
import { emptyHash, type Hash64 } from '../../value/hash.js';

/** The numbers that change with each commit. Every batch writes them, as one row. */
export interface DatabaseState {
  /** The last commit. 0 in an empty database. */
  seq: number;
  /** Raised by every promotion. */
  epoch: number;
  /** Epoch of the leader that made the last commit: of two histories the later one is newer. */
  commitEpoch: number;
  chain: Hash64;
  /** The oldest commit in the log; `seq + 1` when it has none. */
  oldestSeq: number;
  /** The chain hash before `oldestSeq`, so that the rest of a trimmed log can be verified. */
  oldestChain: Hash64;
  nextCollection: number;
  nextIndex: number;
}

export const freshState: DatabaseState = {
  seq: 0,
  epoch: 1,
  commitEpoch: 0,
  chain: emptyHash,
  oldestSeq: 1,
  oldestChain: emptyHash,
  nextCollection: 1,
  nextIndex: 1,
};

export const stateRow = Buffer.from('state');
export const lineageRow = Buffer.from('lineage');

/** As JSON. Written by hand because it is built for every batch. */
export function encodeState(state: DatabaseState): Buffer {
  const { seq, epoch, commitEpoch, chain, oldestSeq, oldestChain } = state;
  const { nextCollection, nextIndex } = state;
  return Buffer.from(
    `{"seq":${seq},"epoch":${epoch},"commitEpoch":${commitEpoch},"chain":{"high":${chain.high},"low":${chain.low}},` +
      `"oldestSeq":${oldestSeq},"oldestChain":{"high":${oldestChain.high},` +
      `"low":${oldestChain.low}},"nextCollection":${nextCollection},"nextIndex":${nextIndex}}`,
    'latin1',
  );
}

export function decodeState(bytes: Buffer | undefined): DatabaseState {
  if (!bytes) return freshState;
  return { ...freshState, ...(JSON.parse(bytes.toString()) as Partial<DatabaseState>) };
}

/** The state after one more commit. Written by hand because it is built for every commit. */
export function afterCommit(state: DatabaseState, seq: number, chain: Hash64): DatabaseState {
  return {
    seq,
    epoch: state.epoch,
    commitEpoch: state.epoch,
    chain,
    oldestSeq: state.oldestSeq,
    oldestChain: state.oldestChain,
    nextCollection: state.nextCollection,
    nextIndex: state.nextIndex,
  };
}

/** The lineage: identifies the history of this file. A restored copy starts a new one. */
export function lineageOf(tables: Tables): string {
  return tables.get('meta', lineageRow)?.toString() ?? '';
}
