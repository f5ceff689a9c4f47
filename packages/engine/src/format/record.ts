import type { Codec, StoreCodec } from './codec.js';
import {
  type Json,
  type JsonObject,
  maxRecordBytes,
  toDocument,
  refuse,
} from '../value/documents.js';
import { type GrowingBytes, Hasher, hashText, type Hash64 } from '../value/bytes.js';
import { copyIdText, idLength, readId, readUint48, writeId } from './keys.js';

/**
 * A record as it is stored:
 *
 *   flags u8 | content hash u32 | rev u32 | seq u48 | created_at u48 | updated_at u48
 *   | expires_at u48 if flagged | key length u16, key utf-8 if flagged | document (see codec.ts)
 *
 * Times are milliseconds since the epoch. The id is in the table's key, not in the value.
 */
const hasExpiry = 1;
const hasKey = 2;
export const fixedLength = 27;

export interface RecordFields {
  rev: number;
  seq: number;
  createdAt: number;
  updatedAt: number;
  /** 0: never. */
  expiresAt: number;
  /** "": not keyed. */
  key: string;
  /** Hash of the document, which `verify` recomputes. */
  contentHash: number;
}

export function encodeRecord(fields: RecordFields, document: Uint8Array): Buffer {
  const keyLength = fields.key === '' ? 0 : Buffer.byteLength(fields.key);
  const headLength = fixedLength + (fields.expiresAt ? 6 : 0) + (keyLength ? 2 + keyLength : 0);
  const bytes = Buffer.allocUnsafe(headLength + document.length);
  writeFixedHead(fields, (fields.expiresAt ? hasExpiry : 0) | (keyLength ? hasKey : 0), bytes);
  let at = fixedLength;
  if (fields.expiresAt) at = bytes.writeUIntBE(fields.expiresAt, at, 6);
  if (keyLength) {
    at = bytes.writeUInt16BE(keyLength, at);
    at += bytes.write(fields.key, at);
  }
  bytes.set(document, at);
  return bytes;
}

/** Writes the fixed-length head of a record. */
function writeFixedHead(fields: RecordFields, flags: number, bytes: Buffer): void {
  bytes[0] = flags;
  bytes.writeUInt32BE(fields.contentHash, 1);
  bytes.writeUInt32BE(fields.rev, 5);
  bytes.writeUIntBE(fields.seq, 9, 6);
  bytes.writeUIntBE(fields.createdAt, 15, 6);
  bytes.writeUIntBE(fields.updatedAt, 21, 6);
}

/** The offset of the 16 bytes of an id, for callers that may not need its text. */
export interface IdInPlace {
  bytes: Uint8Array;
  at: number;
}

/**
 * A record read in place: nothing is decoded before it is needed. During a scan, `bytes` may be a
 * shared buffer that the next step overwrites; `keep()` returns a copy.
 */
export class RecordImage {
  #data: JsonObject | undefined;
  #id: string | undefined;
  #isCopy = false;
  readonly #place: IdInPlace | undefined;

  constructor(
    id: string | IdInPlace,
    readonly bytes: Uint8Array,
    /** The end of the record in `bytes`, which may be longer. */
    readonly end: number,
    private readonly codec: Codec,
  ) {
    if (typeof id === 'string') this.#id = id;
    else this.#place = id;
  }

  get id(): string {
    return (this.#id ??= readId(this.#place!.bytes, this.#place!.at));
  }

  /** Writes the 26 characters of the id as ASCII. */
  writeId(target: Buffer, at: number): void {
    if (this.#place) copyIdText(this.#place.bytes, this.#place.at, target, at);
    else target.write(this.#id!, at, 'latin1');
  }

  /** Copies the 16 bytes of the id. */
  copyId(target: Uint8Array, at: number): void {
    if (!this.#place) return writeId(this.#id!, target, at);
    const { bytes, at: from } = this.#place;
    for (let i = 0; i < idLength; i++) target[at + i] = bytes[from + i]!;
  }

  get contentHash(): number {
    return readUint32(this.bytes, 1);
  }
  get rev(): number {
    return readUint32(this.bytes, 5);
  }
  get seq(): number {
    return readUint48(this.bytes, 9);
  }
  get createdAt(): number {
    return readUint48(this.bytes, 15);
  }
  get updatedAt(): number {
    return readUint48(this.bytes, 21);
  }
  /** 0: never. */
  get expiresAt(): number {
    return this.bytes[0]! & hasExpiry ? readUint48(this.bytes, fixedLength) : 0;
  }
  get hasKey(): boolean {
    return (this.bytes[0]! & hasKey) !== 0;
  }
  /** "": not keyed. */
  get key(): string {
    if (!(this.bytes[0]! & hasKey)) return '';
    const at = this.#keyStart;
    const length = (this.bytes[at]! << 8) | this.bytes[at + 1]!;
    return asBuffer(this.bytes).toString('utf8', at + 2, at + 2 + length);
  }
  /** The document. Belongs to this image: do not change it. */
  get data(): JsonObject {
    return (this.#data ??= this.codec.decode(this.bytes, this.documentStart, this.end, this));
  }
  /** The document as JSON text, written from its bytes. Valid until the next one is read. */
  get json(): Buffer {
    return this.codec.json(this.bytes, this.documentStart, this.end, this);
  }
  /** Writes that text. */
  writeJson(to: GrowingBytes): void {
    this.codec.writeJson(to, this.bytes, this.documentStart, this.end, this);
  }
  /**
   * A top-level field of the document; undefined when it has none of this name. Cheap as long as
   * the whole document was not decoded.
   */
  top(name: string): Json | undefined {
    if (this.#data === undefined && this.codec.field) {
      return this.codec.field(this.bytes, this.documentStart, this.end, name);
    }
    const { data } = this;
    return Object.hasOwn(data, name) ? data[name] : undefined;
  }
  /** Whether a top-level field is this text, given as it is and as bytes. */
  isText(name: string, text: string, utf8: Uint8Array): boolean {
    if (this.#data === undefined && this.codec.isText) {
      return this.codec.isText(this.bytes, this.documentStart, this.end, name, text, utf8);
    }
    return this.top(name) === text;
  }
  get documentStart(): number {
    if (!(this.bytes[0]! & hasKey)) return this.#keyStart;
    const at = this.#keyStart;
    return at + 2 + ((this.bytes[at]! << 8) | this.bytes[at + 1]!);
  }

  /** The same image with an already decoded document. */
  withData(data: JsonObject | undefined): this {
    this.#data = data;
    return this;
  }

  isExpired(now: number): boolean {
    return (this.bytes[0]! & hasExpiry) !== 0 && this.expiresAt <= now;
  }

  /** The image with the document as it is stored, without migrations. */
  stored(codec: Codec): RecordImage {
    if (this.codec === codec) return this;
    return new RecordImage(this.#place ?? this.#id!, this.bytes, this.end, codec);
  }

  /** A copy of the stored bytes, safe to keep. */
  keep(): RecordImage {
    if (this.#isCopy) return this;
    const { end } = this;
    // The id is stored as bytes after the record, because its text is often not needed.
    const bytes = Buffer.allocUnsafe(end + (this.#place ? idLength : 0));
    bytes.set(this.bytes.subarray(0, end));
    if (this.#place) this.copyId(bytes, end);
    const place = this.#place && { bytes, at: end };
    const copy = new RecordImage(place ?? this.#id!, bytes, end, this.codec);
    copy.#data = this.#data;
    copy.#isCopy = true;
    return copy;
  }

  get #keyStart(): number {
    return this.bytes[0]! & hasExpiry ? fixedLength + 6 : fixedLength;
  }
}

function readUint32(source: Uint8Array, at: number): number {
  return (
    source[at]! * 0x1000000 + ((source[at + 1]! << 16) | (source[at + 2]! << 8) | source[at + 3]!)
  );
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The result of a request, as the commit carries it to other nodes. */
export interface RequestResult {
  /** Key of its row in `requests`. */
  key: Buffer;
  /** The row, without the record image, which is among the changes of the commit. */
  value: Buffer;
  /** Milliseconds since the epoch. */
  expiresAt: number;
}

const resultHeadLength = 6 + 2 + 4;

/** `expires_at u48 | key length u16 | value length u32 | key | value` */
export function encodeResult({ key, value, expiresAt }: RequestResult): Buffer {
  const head = Buffer.allocUnsafe(resultHeadLength);
  head.writeUIntBE(expiresAt, 0, 6);
  head.writeUInt16BE(key.length, 6);
  head.writeUInt32BE(value.length, 8);
  return Buffer.concat([head, key, value]);
}

/** The results from `at` to the end of a commit. */
function decodeResults(bytes: Buffer, at: number): RequestResult[] {
  const results: RequestResult[] = [];
  for (let next = at; next < bytes.length;) {
    const valueAt = next + resultHeadLength + bytes.readUInt16BE(next + 6);
    const end = valueAt + bytes.readUInt32BE(next + 8);
    results.push({
      expiresAt: readUint48(bytes, next),
      key: bytes.subarray(next + resultHeadLength, valueAt),
      value: bytes.subarray(valueAt, end),
    });
    next = end;
  }
  return results;
}

/** A document encoded before its job runs in the writer. */
export class EncodedDocument {
  #isTaken = false;
  #data: JsonObject | undefined;

  constructor(
    /** The document, after room for the head of its record. */
    private readonly row: Buffer,
    readonly contentHash: number,
    private readonly codec: StoreCodec,
    data: JsonObject | undefined,
  ) {
    this.#data = data;
    if (this.size <= maxRecordBytes) return;
    throw refuse(
      'RECORD_TOO_LARGE',
      `The record takes ${this.size} bytes; the most is ${maxRecordBytes}. ` +
        'Split it, or keep the large part elsewhere.',
      { limit_bytes: String(maxRecordBytes) },
    );
  }

  /** Size of the document alone. */
  get size(): number {
    return this.row.length - fixedLength;
  }

  get data(): JsonObject {
    return (this.#data ??= this.codec.decode(this.row, fixedLength, this.row.length));
  }

  /** The document as an object; undefined when it would have to be decoded. */
  get decodedData(): JsonObject | undefined {
    return this.#data;
  }

  /** For operations, which accept encoded and plain documents. */
  get encoded(): this {
    return this;
  }

  /** The record with this document. The first one is built in place, without a copy. */
  toRecord(fields: RecordFields): Buffer {
    if (this.#isTaken || fields.expiresAt || fields.key !== '') {
      return encodeRecord(fields, this.row.subarray(fixedLength));
    }
    this.#isTaken = true;
    writeFixedHead(fields, 0, this.row);
    return this.row;
  }
}

/** Encodes a document that is clean and will not be modified. */
export function encodeDocument(
  { codec }: { codec: StoreCodec },
  data: JsonObject,
): EncodedDocument {
  const encoded = write(codec, data, data);
  if (encoded) return encoded;
  const clean = toDocument(data);
  return write(codec, clean, clean)!;
}

/**
 * Checks and encodes a value from outside. A value that the writer finds clean is not copied.
 * `isOwn`: the caller keeps no reference to it.
 */
export function encodeValue(
  { codec }: { codec: StoreCodec },
  value: unknown,
  isOwn = false,
): EncodedDocument {
  if (typeof value === 'object' && value !== null) {
    const encoded = write(codec, value, isOwn ? (value as JsonObject) : undefined);
    if (encoded) return encoded;
  }
  return encodeDocument({ codec }, toDocument(value));
}

function write(
  codec: StoreCodec,
  value: object,
  data: JsonObject | undefined,
): EncodedDocument | undefined {
  const { writer } = codec;
  const row = writer.write(value, fixedLength);
  return row && new EncodedDocument(row, writer.contentHash, codec, data);
}

/** A record as the in-process API shows it. */
export interface StoredRecord<T> {
  /** A ULID: ids made later sort later. */
  id: string;
  /** The caller's own key, or "" when the record has none. */
  key: string;
  /** 1 on insert, one more with each change. */
  rev: number;
  data: T;
  createdAt: Date;
  updatedAt: Date;
  /** The commit that last changed it. */
  seq: number;
  /** When it will be removed; absent: never. */
  expiresAt?: Date;
  /** How well it matches a search; only in its results. */
  score?: number;
  /** Parts of its texts with hits in `<mark>`, by field; only in results of a search. */
  highlights?: Record<string, string[]>;
}

/** A record that a delete removed, as it last was. */
export interface DeletedRecord<T> extends StoredRecord<T> {
  /** The commit that deleted it; 0 inside a transaction, whose commit is still to come. */
  deletedSeq: number;
}

export function toStoredRecord<T>(image: RecordImage, data: unknown = image.data): StoredRecord<T> {
  const record: StoredRecord<T> = {
    id: image.id,
    key: image.key,
    rev: image.rev,
    data: data as T,
    createdAt: new Date(image.createdAt),
    updatedAt: new Date(image.updatedAt),
    seq: image.seq,
  };
  const { expiresAt } = image;
  if (expiresAt) record.expiresAt = new Date(expiresAt);
  return record;
}

export type ChangeOp = 'insert' | 'update' | 'delete' | 'expire';

/** What a commit did to one record. */
export interface Change {
  op: ChangeOp;
  collection: number;
  id: string;
  /** Absent after a delete or an expiry. */
  after?: RecordImage | undefined;
  /** Absent before an insert. */
  before?: RecordImage | undefined;
}

/** One commit as the log keeps it. */
export interface Commit {
  seq: number;
  /** Milliseconds since the epoch. */
  at: number;
  epoch: number;
  /** Chain hash over this commit and all before it. */
  chain: Hash64;
  changes: Change[];
  /** Results of the requests that this commit contains. */
  results?: readonly RequestResult[];
}

/** An encoded commit, and the offsets of its record images. */
export interface CommitRow {
  seq: number;
  bytes: Buffer;
  /** In pairs: an image as it is stored in `records`, and its offset in `bytes`. */
  images: readonly (Buffer | number)[];
}

const ops: readonly ChangeOp[] = ['insert', 'update', 'delete', 'expire'];
const opNumbers: Readonly<Record<ChangeOp, number>> = {
  insert: 0,
  update: 1,
  delete: 2,
  expire: 3,
};
const headLength = 6 + 4 + 8 + 4;
const changeLength = 1 + 4 + idLength + 4 + 4;

/**
 * A commit in the log:
 *
 *   at u48 | epoch u32 | chain 8 | count u32
 *   then per change: op u8 | collection u32 | id 16 | after length u32 | before length u32 | both
 *   then the results of its requests
 */
export function encodeCommit(commit: Commit): CommitRow {
  const images: (Buffer | number)[] = [];
  let length = headLength;
  for (const { after, before } of commit.changes) {
    length += changeLength + (after?.end ?? 0) + (before?.end ?? 0);
  }
  const bytes = Buffer.allocUnsafe(length);
  bytes.writeUIntBE(commit.at, 0, 6);
  bytes.writeUInt32BE(commit.epoch, 6);
  bytes.writeUInt32BE(commit.chain.high, 10);
  bytes.writeUInt32BE(commit.chain.low, 14);
  bytes.writeUInt32BE(commit.changes.length, 18);
  let at = headLength;
  for (const { op, collection, id, after, before } of commit.changes) {
    bytes[at] = opNumbers[op];
    bytes.writeUInt32BE(collection, at + 1);
    writeId(id, bytes, at + 5);
    bytes.writeUInt32BE(after?.end ?? 0, at + 21);
    bytes.writeUInt32BE(before?.end ?? 0, at + 25);
    at += changeLength;
    if (after) {
      if (after.bytes.length === after.end) images.push(after.bytes as Buffer, at);
      at = writeImage(after, bytes, at);
    }
    if (before) at = writeImage(before, bytes, at);
  }
  return { seq: commit.seq, bytes, images };
}

function writeImage(image: RecordImage, target: Buffer, at: number): number {
  const { bytes, end } = image;
  target.set(bytes.length === end ? bytes : bytes.subarray(0, end), at);
  return at + end;
}

export function decodeCommit(seq: number, bytes: Buffer, codec: Codec): Commit {
  const commit: Commit = {
    seq,
    at: readUint48(bytes, 0),
    epoch: bytes.readUInt32BE(6),
    chain: commitChain(bytes),
    changes: [],
  };
  const count = bytes.readUInt32BE(18);
  let at = headLength;
  for (let i = 0; i < count; i++) {
    const op = ops[bytes[at]!];
    if (op === undefined) throw new RangeError(`Commit ${seq} holds an unknown kind of change`);
    const id = readId(bytes, at + 5);
    const collection = bytes.readUInt32BE(at + 1);
    const afterEnd = at + changeLength + bytes.readUInt32BE(at + 21);
    const beforeEnd = afterEnd + bytes.readUInt32BE(at + 25);
    const image = (from: number, to: number) =>
      from === to ? undefined : new RecordImage(id, bytes.subarray(from, to), to - from, codec);
    const after = image(at + changeLength, afterEnd);
    commit.changes.push({ op, collection, id, after, before: image(afterEnd, beforeEnd) });
    at = beforeEnd;
  }
  if (at < bytes.length) commit.results = decodeResults(bytes, at);
  return commit;
}

/** The time of an encoded commit. */
export function commitTime(bytes: Uint8Array): number {
  return readUint48(bytes, 0);
}

/** The chain hash after an encoded commit. */
export function commitChain(bytes: Buffer): Hash64 {
  return { high: bytes.readUInt32BE(10), low: bytes.readUInt32BE(14) };
}

/**
 * The chain hash after a commit. It covers the content, not the encoding of this file, so that a
 * follower computes the same value.
 */
export function chainAfter(
  previous: Hash64,
  { seq, epoch, changes }: Pick<Commit, 'seq' | 'epoch'> & { changes: readonly Change[] },
  nameOf: (collection: number) => string,
): Hash64 {
  const chain = new Hasher(previous).number(seq);
  // Two leaders may each start an epoch at this commit, and their hashes must differ.
  if (changes.length === 0) chain.number(epoch);
  let named = -1;
  let name = 0;
  for (const { op, collection, id, after } of changes) {
    // Most commits change only one collection.
    if (collection !== named) name = hashText(nameOf((named = collection))).low;
    chain.number(opNumbers[op]).number(name).text(id);
    if (!after) continue;
    chain.number(after.rev).number(after.createdAt).number(after.updatedAt);
    chain.number(after.expiresAt).number(after.contentHash).text(after.key);
  }
  return chain.result();
}

/**
 * Merges several changes of one record in one commit into one change, from its state before the
 * commit to its state after it.
 */
export function coalesce(changes: Change[]): Change[] {
  // A record can be inserted twice only with a delete in between.
  if (changes.length < 2 || changes.every(({ op }) => op === 'insert')) return changes;
  const byRecord = new Map<string, Change>();
  for (const change of changes) {
    const name = `${change.collection}/${change.id}`;
    const earlier = byRecord.get(name);
    if (!earlier) {
      byRecord.set(name, change);
      continue;
    }
    // Moved to the end: the order among records is the order of their last change.
    byRecord.delete(name);
    const { before } = earlier;
    const { after } = change;
    if (!before && !after) continue;
    const op = !before ? 'insert' : after ? 'update' : change.op;
    byRecord.set(name, { ...change, op, before, after });
  }
  return [...byRecord.values()];
}
