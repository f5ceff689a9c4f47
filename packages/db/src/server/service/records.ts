import type { JsonObject } from '@bufbuild/protobuf';
import type { Record } from '@millrace/contract/db';
import { refuse } from '../../engine/refusal.js';
import type { RecordImage } from '../../engine/record.js';
import { parseJson, timestamp } from './values.js';

const noBytes = new Uint8Array(0);

export interface RecordForm {
  /** The body as JSON bytes in place of a struct. */
  json: boolean;
  /** What to show of the record; its whole document unless told. */
  data?: JsonObject | undefined;
  /** 0 for what a transaction has not committed yet. */
  seq?: number | undefined;
}

/** A record as it travels. */
export function recordMessage(image: RecordImage, form: RecordForm): Record {
  const data = form.data ?? image.data;
  const { expiresAt } = image;
  const message: Record = {
    $typeName: 'millrace.db.v1.Record',
    id: image.id,
    key: image.key,
    rev: BigInt(image.rev),
    dataJson: form.json ? jsonBytes(data) : noBytes,
    createdAt: timestamp(image.createdAt),
    updatedAt: timestamp(image.updatedAt),
    seq: BigInt(form.seq ?? image.seq),
  };
  if (!form.json) message.data = data;
  if (expiresAt) message.expiresAt = timestamp(expiresAt);
  return message;
}

export function jsonBytes(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}

/** What is left to say of a record that is gone. */
export function removedRecord(id: string, key: string, rev: number, seq: number): Record {
  return {
    $typeName: 'millrace.db.v1.Record',
    id,
    key,
    rev: BigInt(rev),
    dataJson: noBytes,
    seq: BigInt(seq),
  };
}

/** The body of a write, however it travelled. The engine says what is wrong with it. */
export function documentOf(request: {
  readonly data?: JsonObject | undefined;
  readonly dataJson: Uint8Array;
}): unknown {
  const { data, dataJson } = request;
  if (dataJson.length === 0) return data;
  if (data !== undefined) throw refuse('BAD_REQUEST', 'Send data or data_json, not both.');
  return parseJson(dataJson, (problem) => refuse('BAD_DATA', `data_json ${problem}.`));
}
