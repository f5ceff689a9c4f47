import { GrowingBytes } from '@millrace/engine/value/bytes';
import { type JsonObject, refuse } from '@millrace/engine/value/documents';
import type { RecordImage } from '@millrace/engine/format/record';
import type { Hit } from '@millrace/engine/query/page';
import { jsonBytes, ShownRecord, computeOnce } from '../service/records.js';
import type { RecordWriter, Request, FoundRecords } from '../service/call.js';
import { fromBinary, toBinary, type DescMethod, type Message } from '@bufbuild/protobuf';
import type { Value } from '@bufbuild/protobuf/wkt';
import { Database as Api, FilterSchema, type DbMethod, type Filter } from '@millrace/contract/db';
import { messageOf } from '@millrace/kit/errors';
import { carriesRecords, encodeDirectly, MessageEncoder } from '../../codec/encoder.js';
import { PlainDecoder } from '../../codec/decoder.js';

const [more, group] = [0x80, 128];
const largestInt = 2 ** 31;

/** Bytes reserved for a length that is not known yet; most lengths need two. */
const lengthBytes = 2;
const maxTwoByteLength = 2 ** 14;

/** Writes a varint of at most 2^53; the caller has reserved space. */
function putNumber(to: { readonly bytes: Buffer; at: number }, value: number): void {
  const { bytes } = to;
  let { at } = to;
  let rest = value;
  for (; rest >= largestInt; rest = Math.floor(rest / group)) bytes[at++] = (rest % group) | more;
  for (; rest >= group; rest >>>= 7) bytes[at++] = rest | more;
  bytes[at++] = rest;
  to.at = at;
}

/** Writes the length of the bytes since `start` into the reserved bytes before it. */
function closeLength(to: GrowingBytes, start: number): void {
  const length = to.at - start;
  if (length < group || length >= maxTwoByteLength) return moveAndClose(to, start);
  to.bytes[start - 2] = length | more;
  to.bytes[start - 1] = length >>> 7;
}

/** Moves the content when its length needs fewer or more bytes than reserved. */
function moveAndClose(to: GrowingBytes, start: number): void {
  const { at: end } = to;
  to.reserve(2);
  to.at = start - lengthBytes;
  const count = end - start < group ? 1 : end - start < 2 ** 21 ? 3 : 4;
  to.bytes.copyWithin(to.at + count, start, end);
  putNumber(to, end - start);
  to.at += end - start;
}

// Protobuf tags of the fields of Record and Timestamp.
const [id, key, rev, json, createdAt, updatedAt, seq, expiresAt] = [10, 18, 24, 42, 50, 58, 64, 74];
const [score, highlights] = [81, 98];
const [seconds, nanos] = [8, 16];
const idLength = 26;
// Space for the id, a number and the document's prefix, and for the times and number after it.
const roomBefore = 64;
const roomBehind = 64;
const firstBytes = 64 * 1024;
const maxRetainedBytes = 1024 * 1024;

let alone = new GrowingBytes(firstBytes);

/** Encodes a single record. Valid until the next call. */
export function recordBytes({ image, parts, commit, hit }: ShownRecord): Uint8Array {
  if (alone.bytes.length > maxRetainedBytes) alone = new GrowingBytes(firstBytes);
  alone.at = 0;
  writeRecord(alone, image, parts, commit);
  if (hit) writeHit(alone, hit);
  return alone.bytes.subarray(0, alone.at);
}

/**
 * Encodes a record from its stored bytes like the library encodes the message. `parts` is the
 * projected document; undefined means the whole document.
 */
function writeRecord(
  to: GrowingBytes,
  image: RecordImage,
  parts: JsonObject | undefined,
  commit: number,
): void {
  to.reserve(roomBefore);
  to.bytes[to.at] = id;
  to.bytes[to.at + 1] = idLength;
  image.writeId(to.bytes, to.at + 2);
  to.at += 2 + idLength;
  if (image.hasKey) writeKey(to, image.key);
  writeNumber(to, rev, image.rev);
  to.bytes[to.at++] = json;
  const start = (to.at += lengthBytes);
  if (parts === undefined) image.writeJson(to);
  else to.put(jsonBytes(parts));
  closeLength(to, start);
  to.reserve(roomBehind);
  writeTime(to, createdAt, image.createdAt);
  writeTime(to, updatedAt, image.updatedAt);
  writeNumber(to, seq, commit);
  const expiry = image.expiresAt;
  if (expiry) writeTime(to, expiresAt, expiry);
}

function writeHit(to: GrowingBytes, hit: Hit): void {
  to.reserve(roomBehind);
  to.bytes[to.at++] = score;
  to.at = to.bytes.writeDoubleLE(hit.score, to.at);
  if (!hit.highlights) return;
  const bytes = jsonBytes(hit.highlights);
  to.bytes[to.at++] = highlights;
  putNumber(to, bytes.length);
  to.put(bytes);
}

function writeKey(to: GrowingBytes, text: string): void {
  const length = Buffer.byteLength(text, 'utf8');
  to.reserve(length + 2 * roomBefore);
  to.bytes[to.at++] = key;
  putNumber(to, length);
  to.at += to.bytes.write(text, to.at, 'utf8');
}

function writeNumber(to: GrowingBytes, tag: number, value: number): void {
  if (value === 0) return;
  to.bytes[to.at++] = tag;
  putNumber(to, value);
}

// Adjacent records often have equal times, so the last encoded time is cached.
const cachedTime = { time: -1, bytes: Buffer.alloc(16), at: 0 };

/** Writes milliseconds as a Timestamp. */
function writeTime(to: GrowingBytes, tag: number, time: number): void {
  if (time !== cachedTime.time) cacheTime(time);
  const { bytes, at: length } = cachedTime;
  const out = to.bytes;
  let { at } = to;
  out[at++] = tag;
  out[at++] = length;
  for (let i = 0; i < length; i++) out[at++] = bytes[i]!;
  to.at = at;
}

function cacheTime(time: number): void {
  const whole = Math.floor(time / 1000);
  cachedTime.time = time;
  cachedTime.at = 0;
  if (whole !== 0) {
    cachedTime.bytes[cachedTime.at++] = seconds;
    putNumber(cachedTime, whole);
  }
  if (time === whole * 1000) return;
  cachedTime.bytes[cachedTime.at++] = nanos;
  putNumber(cachedTime, (time - whole * 1000) * 1_000_000);
}

const maxFirstBytes = 64 * 1024;
const maxInitialBytes = 1024 * 1024;
/** Room for the first batch of a find: about that of the largest of the last ones. */
let firstBatchBytes = 4 * 1024;
const headBytes = 5;
/** For the other fields of the message, such as a cursor. */
const frameRoom = 512;
// Field number of `records` in FindResponse, and the wire type of a nested message.
const tag = 10;

/** Encoded records of one message, with space reserved for the gRPC prefix. */
class RecordBatch {
  readonly #to: GrowingBytes;

  constructor(to: GrowingBytes) {
    this.#to = to;
  }

  /** The message with its gRPC prefix; `rest` is its other fields. Call it once only. */
  frame(rest: Uint8Array): Buffer {
    const to = this.#to;
    to.put(rest);
    to.bytes[0] = 0;
    to.view.setUint32(1, to.at - headBytes);
    // Copies small content, so that a large buffer is not retained until it is sent.
    const isWasteful = to.at * 4 < to.bytes.length;
    const frame = to.bytes.subarray(0, to.at);
    return isWasteful ? Buffer.from(frame) : frame;
  }
}

/** Encodes found records one after another as the `records` of a FindResponse. */
export class RecordBatchWriter implements RecordWriter {
  #to: GrowingBytes | undefined;
  #nextBytes = firstBatchBytes;

  add(image: RecordImage, parts: JsonObject | undefined, commit: number): void {
    const to = (this.#to ??= emptyPile(this.#nextBytes));
    to.reserve(1 + lengthBytes);
    to.bytes[to.at++] = tag;
    const start = (to.at += lengthBytes);
    writeRecord(to, image, parts, commit);
    closeLength(to, start);
  }

  take(): RecordBatch {
    const taken = this.#to ?? emptyPile(headBytes);
    this.#to = undefined;
    // The next batch is probably of similar size.
    this.#nextBytes = Math.min(taken.at + headBytes, maxInitialBytes);
    const decayed = firstBatchBytes - (firstBatchBytes >> 5);
    firstBatchBytes = Math.min(Math.max(taken.at + frameRoom, decayed), maxFirstBytes);
    return new RecordBatch(taken);
  }
}

function emptyPile(bytes: number): GrowingBytes {
  const to = new GrowingBytes(bytes);
  to.at = headBytes;
  return to;
}

encodeDirectly(ShownRecord, recordBytes);

const maxRequestBytes = 4 * 1024 * 1024;
const maxBulkBytes = 16 * 1024 * 1024;

/** Maximum size of a request message or body. */
export function requestLimit(rpc: DbMethod): number {
  return rpc === 'BulkWrite' ? maxBulkBytes : maxRequestBytes;
}

// A document may have 32 levels at two messages each, nested inside a filter.
const recursionLimit = 200;

/** Decodes the requests of one method and encodes its responses. */
export class MethodCodec<Rpc extends DbMethod> {
  readonly #method: DescMethod;
  /** Undefined for methods that protobuf-es decodes and encodes. */
  readonly #decoder: PlainDecoder | undefined;
  readonly #encoder: MessageEncoder | undefined;
  readonly #conditions: readonly string[];

  constructor(readonly rpc: Rpc) {
    this.#method = Api.methods.find(({ name }) => name === rpc)!;
    if (carriesRecords(this.#method.output)) {
      // The operations of a bulk are messages inside its message.
      this.#decoder = new PlainDecoder(this.#method.input, { parts: rpc === 'BulkWrite' });
      this.#encoder = MessageEncoder.of(this.#method.output);
    }
    this.#conditions = this.#method.input.fields
      .filter((field) => field.message?.typeName === FilterSchema.typeName)
      .map((field) => field.localName);
  }

  decode(bytes: Buffer): Request<Rpc> {
    const limit = requestLimit(this.rpc);
    if (bytes.length > limit) throw tooLarge(bytes.length, limit);
    const plain = this.#decoder?.decode(bytes);
    if (plain) return plain as Request<Rpc>;
    const request = this.#read(bytes) as unknown as Record<string, unknown>;
    for (const name of this.#conditions) {
      const filter = request[name] as Filter | undefined;
      if (filter) request[name] = plainFilter(filter);
    }
    return request as Request<Rpc>;
  }

  encode(message: Message): Buffer {
    return this.#encoder?.encode(message) ?? Buffer.from(toBinary(this.#method.output, message));
  }

  /**
   * The message with its gRPC prefix. Watches with the same view share message objects, so their
   * bytes are encoded once.
   */
  frame(message: Message): Buffer {
    const { written } = message as Partial<FoundRecords>;
    if (written instanceof RecordBatch) return written.frame(this.encode(message));
    if (!this.#encoder) return framed(this.encode(message));
    if (this.rpc !== 'Watch') return this.#encoder.frame(message);
    return computeOnce(message, frameOf, this.#encoder);
  }

  #read(bytes: Uint8Array): Message {
    try {
      return fromBinary(this.#method.input, bytes, { readUnknownFields: false, recursionLimit });
    } catch (error) {
      const text = `The message is not a valid ${this.#method.input.name}: ${messageOf(error)}.`;
      throw refuse('BAD_REQUEST', text, undefined, { cause: error });
    }
  }
}

function framed(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

function frameOf(message: Message, encoder: MessageEncoder): Buffer {
  return encoder.frame(message);
}

export function tooLarge(bytes: number | undefined, limit: number): Error {
  const size = bytes === undefined ? 'more than' : `${bytes} bytes, more than`;
  return refuse(
    'REQUEST_TOO_LARGE',
    `The request has ${size} the limit of ${limit} bytes. Send a smaller request.`,
    { limit_bytes: String(limit) },
  );
}

/**
 * The filter in its JSON form, like filter-decoder.ts produces. Unset fields are left out so that
 * the engine can detect them.
 */
export function plainFilter({ field, op, value, and, or, not }: Filter): object {
  return {
    ...(field !== '' && { field }),
    ...(op !== '' && { op }),
    ...(value && { value: plainValue(value) }),
    ...(and.length > 0 && { and: and.map(plainFilter) }),
    ...(or.length > 0 && { or: or.map(plainFilter) }),
    ...(not && { not: plainFilter(not) }),
  };
}

function plainValue({ kind }: Value): unknown {
  switch (kind.case) {
    case 'listValue':
      return kind.value.values.map(plainValue);
    case 'structValue':
      return Object.fromEntries(
        Object.entries(kind.value.fields).map(([name, value]) => [name, plainValue(value)]),
      );
    case 'numberValue':
    case 'stringValue':
    case 'boolValue':
      return kind.value;
    case 'nullValue':
    case undefined:
      return null;
  }
}
