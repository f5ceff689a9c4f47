import { durationFromMs, timestampDate, type Timestamp } from '@bufbuild/protobuf/wkt';
import {
  type DeleteResponse,
  type Record as RecordMessage,
  ChangeOp,
  WatchKind,
  type Change,
  type WatchResponse,
} from '@millrace/contract/db';
import { Refusal } from '@millrace/kit/errors';
import { ownDocument, refuse, toDocument } from '@millrace/engine/value/documents';
import type { DeletedRecord, StoredRecord } from '@millrace/engine/format/record';
import type { RemovedRecord, WatchChange, WatchMessage } from '@millrace/engine/watch/message';
import { parseFilter } from '@millrace/engine/value/filter';
import { plainFilter } from '@millrace/engine/value/plain-query';

/** A document that is JSON already, in place of `data`. The server checks it. */
export class JsonText {
  readonly bytes: Uint8Array;

  constructor(text: string) {
    this.bytes = Buffer.from(text);
  }
}

/** Validates a document like the engine and encodes it as JSON in UTF-8, so that it needs no copy. */
export function encodeData(data: object, name = 'data'): Uint8Array {
  if (data instanceof JsonText) return data.bytes;
  return Buffer.from(JSON.stringify(ownDocument(data, name)));
}

/** Encodes operators; the server checks them, and this only what JSON cannot carry. */
export function encodeUpdate(update: object): Uint8Array {
  try {
    return Buffer.from(JSON.stringify(toDocument(update, 'update')));
  } catch (error) {
    throw error instanceof Refusal ? refuse('BAD_UPDATE', error.detail) : error;
  }
}

export function decodeJson(bytes: Uint8Array): unknown {
  return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString());
}

/** Converts a record that only the library could decode; the others are converted already. */
export function toStored<T>(
  message: RecordMessage | StoredRecord<unknown> | undefined,
): StoredRecord<T> {
  if (!message) throw new Error('The server sent a response without a record');
  if (!('$typeName' in message)) {
    if (message.data === undefined) throw new Error('The server sent a record without data');
    return message as StoredRecord<T>;
  }
  const record: StoredRecord<T> = {
    id: message.id,
    key: message.key,
    rev: Number(message.rev),
    data: decodeJson(message.dataJson) as T,
    createdAt: dateOf(message.createdAt),
    updatedAt: dateOf(message.updatedAt),
    seq: Number(message.seq),
  };
  if (message.expiresAt) record.expiresAt = dateOf(message.expiresAt);
  if (message.score !== undefined) record.score = message.score;
  if (message.highlightsJson.length > 0) {
    record.highlights = decodeJson(message.highlightsJson) as Record<string, string[]>;
  }
  return record;
}

/** A deleted record and the commit that deleted it. */
export function toDeleted<T>(reply: Pick<DeleteResponse, 'record' | 'seq'>): DeletedRecord<T> {
  return Object.assign(toStored<T>(reply.record), { deletedSeq: Number(reply.seq) });
}

/** Converts the message of a deleted record. */
function toRemoved({ id, key, rev, seq }: RecordMessage): RemovedRecord {
  return { id, key, rev: Number(rev), seq: Number(seq) };
}

export function dateOf(timestamp: Timestamp | undefined): Date {
  return timestamp ? timestampDate(timestamp) : new Date(0);
}

/** The TTL of a write; undefined: the server's default. */
export function ttlOf(ttlMs: number | undefined) {
  return ttlMs === undefined ? {} : { ttl: durationOf(ttlMs, 'ttl') };
}

/** Converts a commit or revision number. */
export function uint64Of(value: number, name: string): bigint {
  if (Number.isSafeInteger(value) && value >= 0) return BigInt(value);
  throw refuse('BAD_REQUEST', `${name} must be a whole number of 0 or more, not ${value}.`);
}

export function durationOf(durationMs: number, name: string) {
  if (Number.isFinite(durationMs) && durationMs >= 0) return durationFromMs(Math.ceil(durationMs));
  throw refuse('BAD_REQUEST', `${name} must be a duration of 0 or more, not ${durationMs} ms.`);
}

const kinds = {
  [WatchKind.UNSPECIFIED]: undefined,
  [WatchKind.CHANGES]: 'changes',
  [WatchKind.INITIAL]: 'initial',
  [WatchKind.INITIAL_END]: 'initial_end',
  [WatchKind.BOOKMARK]: 'bookmark',
} as const;

/** The kind of a change; undefined for one that this version does not know. */
export const changeOps = {
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
  const op = changeOps[change.op];
  if (!op || !change.record) throw new Error('The server sent a change without a record');
  const about = { collection, entered, left, ...beforeOf<T>(change.before) };
  return op === 'insert' || op === 'update'
    ? { ...about, op, record: toStored<T>(change.record) }
    : { ...about, op, record: toRemoved(change.record) };
}

function beforeOf<T>(before: RecordMessage | undefined): { before?: StoredRecord<T> } {
  return before ? { before: toStored<T>(before) } : {};
}

/** Checks a filter in either form before it is sent. Refuses BAD_FILTER. */
export function checkFilter(filter: unknown): void {
  parseFilter(plainFilter(filter));
}
