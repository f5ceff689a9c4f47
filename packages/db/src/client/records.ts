import { durationFromMs, timestampDate, type Timestamp } from '@bufbuild/protobuf/wkt';
import type { DeleteResponse, Record as RecordMessage } from '@millrace/contract/db';
import { ownDocument } from '@millrace/engine/value/documents';
import { refuse } from '@millrace/engine/value/refusal';
import type { DeletedRecord, StoredRecord } from '@millrace/engine/format/stored-record';
import type { RemovedRecord } from '@millrace/engine/watch/message';

/** Validates a document like the engine and encodes it as JSON in UTF-8, so that it needs no copy. */
export function encodeData(data: object, name = 'data'): Uint8Array {
  return Buffer.from(JSON.stringify(ownDocument(data, name)));
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
  return record;
}

/** A deleted record and the commit that deleted it. */
export function toDeleted<T>(reply: Pick<DeleteResponse, 'record' | 'seq'>): DeletedRecord<T> {
  return Object.assign(toStored<T>(reply.record), { deletedSeq: Number(reply.seq) });
}

/** Converts the message of a deleted record. */
export function toRemoved({ id, key, rev, seq }: RecordMessage): RemovedRecord {
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
