import type { JsonObject } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import type { Record } from '@millrace/contract/db';
import { refuse } from '@millrace/engine/value/refusal';
import type { RecordImage } from '@millrace/engine/format/record';
import { parseJson, timestamp } from './values.js';

const noBytes = new Uint8Array(0);

export interface RecordForm {
  /** The body as JSON bytes instead of a struct. */
  json: boolean;
  /** The projected document; the whole document by default. */
  data?: JsonObject | undefined;
  /** 0 for uncommitted writes of a transaction. */
  seq?: number | undefined;
}

/**
 * A record message whose body is JSON. Its fields are computed lazily, because gRPC and REST encode
 * it directly from the stored bytes.
 */
export class ShownRecord {
  readonly $typeName = 'millrace.db.v1.Record';

  constructor(
    readonly image: RecordImage,
    /** The projected document; undefined: the whole document. */
    readonly parts: JsonObject | undefined,
    /** The seq to show. */
    readonly commit: number,
  ) {}

  /** The body. Valid until the body of another record is read. */
  get json(): Uint8Array {
    return this.parts === undefined ? this.image.json : jsonBytes(this.parts);
  }

  get id(): string {
    return this.image.id;
  }
  get key(): string {
    return this.image.key;
  }
  get rev(): bigint {
    return BigInt(this.image.rev);
  }
  get dataJson(): Uint8Array {
    return Buffer.from(this.json);
  }
  get createdAt(): Timestamp {
    return timestamp(this.image.createdAt);
  }
  get updatedAt(): Timestamp {
    return timestamp(this.image.updatedAt);
  }
  get seq(): bigint {
    return BigInt(this.commit);
  }
  get expiresAt(): Timestamp | undefined {
    const { expiresAt } = this.image;
    return expiresAt ? timestamp(expiresAt) : undefined;
  }
}

/** The message of a record. */
export function recordMessage(image: RecordImage, form: RecordForm): Record {
  const commit = form.seq ?? image.seq;
  if (form.json) return new ShownRecord(image, form.data, commit);
  const { expiresAt } = image;
  const message: Record = {
    $typeName: 'millrace.db.v1.Record',
    id: image.id,
    key: image.key,
    rev: BigInt(image.rev),
    data: form.data ?? image.data,
    dataJson: noBytes,
    createdAt: timestamp(image.createdAt),
    updatedAt: timestamp(image.updatedAt),
    seq: BigInt(commit),
  };
  if (expiresAt) message.expiresAt = timestamp(expiresAt);
  return message;
}

export function jsonBytes(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}

/** The message of a deleted record. */
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

/** The document of a write, from either encoding. The engine validates it. */
export function documentOf(request: {
  readonly data?: JsonObject | undefined;
  readonly dataJson: Uint8Array;
}): unknown {
  const { data, dataJson } = request;
  if (dataJson.length === 0) return data;
  if (data !== undefined) throw refuse('BAD_REQUEST', 'Send data or data_json, not both.');
  return parseJson(dataJson, (problem) => refuse('BAD_DATA', `data_json ${problem}.`));
}
