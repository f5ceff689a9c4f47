import { emptyHash, type Hash64 } from '../hash.js';

/** The few numbers that every commit moves. They are written with it, as one row. */
export interface DatabaseState {
  /** The last commit. 0 in an empty database. */
  seq: number;
  /** Raised by every promotion. */
  epoch: number;
  chain: Hash64;
  /** The oldest commit that the log still has; `seq + 1` when it has none. */
  oldestSeq: number;
  /** The chain before `oldestSeq`, so that what is left of the log can still be verified. */
  oldestChain: Hash64;
  /** Bytes of the log's rows. */
  logBytes: number;
  nextCollection: number;
  nextIndex: number;
}

export const freshState: DatabaseState = {
  seq: 0,
  epoch: 1,
  chain: emptyHash,
  oldestSeq: 1,
  oldestChain: emptyHash,
  logBytes: 0,
  nextCollection: 1,
  nextIndex: 1,
};

export const stateRow = Buffer.from('state');

export function encodeState(state: DatabaseState): Buffer {
  return Buffer.from(JSON.stringify(state));
}

export function decodeState(bytes: Buffer | undefined): DatabaseState {
  return bytes ? { ...freshState, ...(JSON.parse(bytes.toString()) as DatabaseState) } : freshState;
}

/** The state after one more commit. Spelled out because it is made for every single one. */
export function afterCommit(
  state: DatabaseState,
  seq: number,
  chain: Hash64,
  rowBytes: number,
): DatabaseState {
  return {
    seq,
    epoch: state.epoch,
    chain,
    oldestSeq: state.oldestSeq,
    oldestChain: state.oldestChain,
    logBytes: state.logBytes + rowBytes,
    nextCollection: state.nextCollection,
    nextIndex: state.nextIndex,
  };
}
