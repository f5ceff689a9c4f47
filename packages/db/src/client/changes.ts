import {
  ChangeOp,
  WatchKind,
  type Change,
  type Record as RecordMessage,
  type WatchResponse,
} from '@millrace/contract/db';
import type { StoredRecord } from '@millrace/engine/format/stored-record';
import type { WatchChange, WatchMessage } from '@millrace/engine/watch/message';
import { dateOf, toRemoved, toStored } from './records.js';

const kinds = {
  [WatchKind.UNSPECIFIED]: undefined,
  [WatchKind.CHANGES]: 'changes',
  [WatchKind.INITIAL]: 'initial',
  [WatchKind.INITIAL_END]: 'initial_end',
  [WatchKind.BOOKMARK]: 'bookmark',
} as const;

const ops = {
  [ChangeOp.UNSPECIFIED]: undefined,
  [ChangeOp.INSERT]: 'insert',
  [ChangeOp.UPDATE]: 'update',
  [ChangeOp.DELETE]: 'delete',
  [ChangeOp.EXPIRE]: 'expire',
} as const;

/** Converts a watch message; undefined for a kind that this client does not know. */
export function toWatchMessage<T>(reply: WatchResponse): WatchMessage<WatchChange<T>> | undefined {
  const kind = kinds[reply.kind];
  if (!kind) return undefined;
  return {
    kind,
    seq: Number(reply.seq),
    epoch: Number(reply.epoch),
    ...(reply.committedAt ? { committedAt: dateOf(reply.committedAt) } : {}),
    changes: reply.changes.map((change) => toChange<T>(change)),
    resumeToken: reply.resumeToken,
    leaderSeq: Number(reply.leaderSeq),
    chainHash: toHash(reply.chainHash),
  };
}

export function toHash(bits: bigint): { high: number; low: number } {
  return { high: Number(bits >> 32n), low: Number(bits & 0xffff_ffffn) };
}

function toChange<T>(change: Change): WatchChange<T> {
  const { collection, entered, left } = change;
  const op = ops[change.op];
  if (!op || !change.record) throw new Error('The server sent a change without a record');
  const about = { collection, entered, left, ...beforeOf<T>(change.before) };
  return op === 'insert' || op === 'update'
    ? { ...about, op, record: toStored<T>(change.record) }
    : { ...about, op, record: toRemoved(change.record) };
}

function beforeOf<T>(before: RecordMessage | undefined): { before?: StoredRecord<T> } {
  return before ? { before: toStored<T>(before) } : {};
}
