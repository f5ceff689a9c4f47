import { timestampMs, type Timestamp } from '@bufbuild/protobuf/wkt';
import { ChangeOp, type Change, type WatchResponse } from '@millrace/contract/db';
import { toHash } from '../../client/changes.js';
import { decodeJson } from '../../client/records.js';
import type { JsonObject } from '@millrace/engine/value/documents';
import {
  DoesNotFit,
  type IncomingChange,
  type IncomingCommit,
} from '@millrace/engine/maintain/replica/apply-commit';

const ops = {
  [ChangeOp.UNSPECIFIED]: undefined,
  [ChangeOp.INSERT]: 'insert',
  [ChangeOp.UPDATE]: 'update',
  [ChangeOp.DELETE]: 'delete',
  [ChangeOp.EXPIRE]: 'expire',
} as const;

/** Converts a message of the leader's watch to a commit. */
export function incomingCommit(message: WatchResponse): IncomingCommit {
  const seq = Number(message.seq);
  return {
    seq,
    at: timeOf(message.committedAt),
    epoch: Number(message.epoch),
    leaderSeq: Number(message.leaderSeq),
    chain: toHash(message.chainHash),
    changes: message.changes.map((change) => incomingChange(change, seq)),
    results: message.requestResults.map(({ key, value, expiresAt }) => {
      return { key: Buffer.from(key), value: Buffer.from(value), expiresAt: timeOf(expiresAt) };
    }),
  };
}

function incomingChange(change: Change, seq: number): IncomingChange {
  const { collection, record } = change;
  const op = ops[change.op];
  if (!op || !record) throw new DoesNotFit(seq, 'it has a change of unknown kind');
  const isThere = op === 'insert' || op === 'update';
  return {
    op,
    collection,
    id: record.id,
    after: isThere
      ? {
          key: record.key,
          rev: Number(record.rev),
          createdAt: timeOf(record.createdAt),
          updatedAt: timeOf(record.updatedAt),
          expiresAt: timeOf(record.expiresAt),
          data: decodeJson(record.dataJson) as JsonObject,
        }
      : undefined,
  };
}

/** 0 when unset. */
function timeOf(time: Timestamp | undefined): number {
  return time ? timestampMs(time) : 0;
}
