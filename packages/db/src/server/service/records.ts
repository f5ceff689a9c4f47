import {
  type UpdateMode as EngineMode,
  type WriteMode,
  refuse,
} from '@millrace/engine/value/documents';
import { isUtf8 } from 'node:buffer';
import type { Duration, Timestamp } from '@bufbuild/protobuf/wkt';
import { DataEncoding, UpdateMode, type Record } from '@millrace/contract/db';
import { isTooDeepJson, jsonErrorReason, maxJsonDepth } from '@millrace/kit/http';
import type { JsonObject } from '@bufbuild/protobuf';
import type { RecordImage } from '@millrace/engine/format/record';
import type { Hit } from '@millrace/engine/query/page';

/** A refusal that names the invalid field. */
export function badField(field: string, problem: string): Error {
  const end = problem.endsWith('?') ? '' : '.';
  return refuse('BAD_REQUEST', `${field} ${problem}${end}`, undefined, {
    errors: [{ pointer: field, message: problem }],
  });
}

export function timestamp(time: number): Timestamp {
  const seconds = Math.floor(time / 1000);
  return {
    $typeName: 'google.protobuf.Timestamp',
    seconds: BigInt(seconds),
    nanos: Math.round((time - seconds * 1000) * 1e6),
  };
}

export function duration(lengthMs: number): Duration {
  const seconds = Math.floor(lengthMs / 1000);
  return {
    $typeName: 'google.protobuf.Duration',
    seconds: BigInt(seconds),
    nanos: Math.round((lengthMs - seconds * 1000) * 1e6),
  };
}

/** Milliseconds; undefined when unset. */
export function durationMs(value: Duration | undefined, field: string): number | undefined {
  if (value === undefined) return undefined;
  const lengthMs = Number(value.seconds) * 1000 + value.nanos / 1e6;
  if (lengthMs < 0) throw badField(field, 'must be a duration of 0 or more');
  return lengthMs;
}

/** A commit or revision number, at most 2^53. */
export function wholeNumber(value: bigint, field: string): number {
  if (value <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(value);
  throw badField(field, 'is larger than any number this database assigns');
}

/** Whether bodies are sent as JSON bytes. */
export function wantsJson(encoding: DataEncoding): boolean {
  if (encoding === DataEncoding.JSON) return true;
  if (encoding === DataEncoding.STRUCT || encoding === DataEncoding.UNSPECIFIED) return false;
  throw badField('encoding', 'must be DATA_ENCODING_STRUCT or DATA_ENCODING_JSON');
}

export function engineMode(mode: UpdateMode): EngineMode {
  if (mode === UpdateMode.MERGE) return 'merge';
  if (mode === UpdateMode.REPLACE || mode === UpdateMode.UNSPECIFIED) return 'replace';
  throw badField('mode', 'must be UPDATE_MODE_REPLACE or UPDATE_MODE_MERGE');
}

// Shorter bodies are cheap to parse at any depth; the engine checks their depth.
const shortBytes = 8 * 1024;

/** Parses JSON; `fail` creates the error from the problem. */
export function parseJson(bytes: Uint8Array, fail: (problem: string) => Error): unknown {
  if (!isUtf8(bytes)) throw fail('is not UTF-8');
  const buffer = Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (buffer.length > shortBytes && isTooDeepJson(buffer)) {
    throw fail(`is nested more than ${maxJsonDepth} levels deep`);
  }
  const text = buffer.toString('utf8');
  try {
    return JSON.parse(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text);
  } catch (error) {
    throw fail(`is not valid JSON: ${jsonErrorReason(error)}`);
  }
}

const noBytes = new Uint8Array(0);

interface RecordForm {
  /** The body as JSON bytes instead of a struct. */
  json: boolean;
  /** The projected document; the whole document by default. */
  data?: JsonObject | undefined;
  /** 0 for uncommitted writes of a transaction. */
  seq?: number | undefined;
  /** What a search says of it. */
  hit?: Hit | undefined;
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
    readonly hit?: Hit | undefined,
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
  get highlightsJson(): Uint8Array {
    return this.hit?.highlights ? jsonBytes(this.hit.highlights) : noBytes;
  }
  get expiresAt(): Timestamp | undefined {
    const { expiresAt } = this.image;
    return expiresAt ? timestamp(expiresAt) : undefined;
  }
}

/** The message of a record. */
export function recordMessage(image: RecordImage, form: RecordForm): Record {
  const commit = form.seq ?? image.seq;
  if (form.json) return new ShownRecord(image, form.data, commit, form.hit);
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
    highlightsJson: noBytes,
    ...form.hit,
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
    highlightsJson: noBytes,
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

/** The body of a change: a document, a merge patch or operators. */
export function changeOf(request: {
  readonly data?: JsonObject | undefined;
  readonly dataJson: Uint8Array;
  readonly update?: JsonObject | undefined;
  readonly updateJson: Uint8Array;
  readonly mode: UpdateMode;
}): { data: unknown; mode: WriteMode } {
  const { data, dataJson, mode } = request;
  const update = operatorsOf(request);
  if (update === undefined) return { data: documentOf(request), mode: engineMode(mode) };
  if (data !== undefined || dataJson.length > 0) {
    throw refuse('BAD_REQUEST', 'Send data or update, not both.');
  }
  if (mode === UpdateMode.REPLACE) {
    throw badField('update', 'changes parts of a record: send it with PATCH or without a mode');
  }
  return { data: update, mode: 'operators' };
}

/** The operators of a change, from either encoding; undefined: none were sent. */
export function operatorsOf(request: {
  readonly update?: JsonObject | undefined;
  readonly updateJson: Uint8Array;
}): unknown {
  const { update, updateJson } = request;
  if (updateJson.length === 0) return update;
  if (update !== undefined) throw refuse('BAD_REQUEST', 'Send update or update_json, not both.');
  return parseJson(updateJson, (problem) => refuse('BAD_UPDATE', `update_json ${problem}.`));
}

const key = Symbol('cached');

interface Cached {
  readonly variant: unknown;
  readonly value: unknown;
  readonly next: Cached | undefined;
}

/**
 * Computes a value from an object that several streams share, and caches it on the object. A
 * WeakMap would move the values to the old generation, where they outlive the object. `variant`
 * distinguishes several values of one object.
 */
export function computeOnce<Source extends object, Value, Variant = unknown>(
  source: Source,
  compute: (source: Source, variant: Variant) => Value,
  variant: Variant = compute as Variant,
): Value {
  const target = source as { [key]?: Cached };
  for (let cached = target[key]; cached; cached = cached.next) {
    if (cached.variant === variant) return cached.value as Value;
  }
  const value = compute(source, variant);
  // Not enumerable, so that a copy of the object does not inherit the value.
  const cached: Cached = { variant, value, next: target[key] };
  Object.defineProperty(target, key, { value: cached, configurable: true });
  return value;
}
