import type { Codec } from './codec.js';
import type { Json, JsonObject } from '../value/documents.js';
import type { GrowingBytes } from '../value/growing-bytes.js';
import { copyIdText, idLength, readId, readUint48 } from './keys.js';

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
  /** Hash of the document (see content-hash.ts), which `verify` recomputes. */
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
export function writeFixedHead(fields: RecordFields, flags: number, bytes: Buffer): void {
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
    return (this.#data ??= this.codec.decode(this.bytes, this.documentStart, this.end));
  }
  /** The document as JSON text, written from its bytes. Valid until the next one is read. */
  get json(): Buffer {
    return this.codec.json(this.bytes, this.documentStart, this.end);
  }
  /** Writes that text. */
  writeJson(to: GrowingBytes): void {
    this.codec.writeJson(to, this.bytes, this.documentStart, this.end);
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

  /** A copy of the stored bytes, safe to keep. */
  keep(): RecordImage {
    const { end } = this;
    // The id is stored as bytes after the record, because its text is often not needed.
    const bytes = Buffer.allocUnsafe(end + (this.#place ? idLength : 0));
    bytes.set(this.bytes.subarray(0, end));
    const place = this.#place && idBehind(this.#place, bytes, end);
    const copy = new RecordImage(place ?? this.#id!, bytes, end, this.codec);
    copy.#data = this.#data;
    return copy;
  }

  get #keyStart(): number {
    return this.bytes[0]! & hasExpiry ? fixedLength + 6 : fixedLength;
  }
}

function idBehind(place: IdInPlace, bytes: Buffer, at: number): IdInPlace {
  for (let i = 0; i < idLength; i++) bytes[at + i] = place.bytes[place.at + i]!;
  return { bytes, at };
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
