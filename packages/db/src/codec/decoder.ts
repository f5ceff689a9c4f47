import { isUtf8 } from 'node:buffer';
import type { StoredRecord } from '@millrace/engine/format/record';
import { create, ScalarType, type DescField, type DescMessage } from '@bufbuild/protobuf';
import { ChangeSchema, FilterSchema, RecordSchema } from '@millrace/contract/db';
import { readFilter } from './filter-decoder.js';
import { delimited } from './encoder.js';

const firstOfBom = 0xef;

/** Undefined unless it is valid UTF-8. Text that may begin with a BOM is left to the library. */
function textAt(bytes: Buffer, start: number, end: number): string | undefined {
  for (let at = start; at < end; at++) {
    if (bytes[at]! >= more) return utf8At(bytes, start, end);
  }
  return bytes.toString('latin1', start, end);
}

function utf8At(bytes: Buffer, start: number, end: number): string | undefined {
  if (bytes[start] === firstOfBom || !isUtf8(bytes.subarray(start, end))) return undefined;
  return bytes.toString('utf8', start, end);
}

const maxNanos = 999_999_999;

/**
 * Decodes a Record message with JSON data to what a client returns, without a message in between:
 * 3.7 us of CPU for each record instead of 11.9. `data` is undefined if there is none.
 * Returns undefined when the library must decode the record.
 */
function readRecord(
  length: number,
  bytes: Buffer,
  start: number,
): StoredRecord<unknown> | undefined {
  return new RecordReader(bytes, start, start + length).read();
}

class RecordReader {
  /** Whether the library must decode the record. */
  #isUnusual = false;

  constructor(
    private readonly bytes: Buffer,
    private at: number,
    private readonly end: number,
  ) {}

  read(): StoredRecord<unknown> | undefined {
    const { bytes, end } = this;
    let [id, key, data]: [string, string, unknown] = ['', '', undefined];
    let [rev, seq, createdAt, updatedAt, expiresAt] = [0, 0, NaN, NaN, NaN];
    while (this.at < end) {
      const tag = bytes[this.at++]!;
      const number = this.#number(end);
      if (tag === tagOf(3, varint)) rev = number;
      else if (tag === tagOf(8, varint)) seq = number;
      else {
        const { at: start } = this;
        const stop = start + number;
        if (stop > end || this.#isUnusual) return undefined;
        if (tag === tagOf(1, delimited)) id = this.#text(stop);
        else if (tag === tagOf(2, delimited)) key = this.#text(stop);
        else if (tag === tagOf(5, delimited)) data = jsonOf(bytes, start, stop);
        else if (tag === tagOf(6, delimited)) createdAt = this.#time(stop, createdAt);
        else if (tag === tagOf(7, delimited)) updatedAt = this.#time(stop, updatedAt);
        else if (tag === tagOf(9, delimited)) expiresAt = this.#time(stop, expiresAt);
        else return undefined;
        this.at = stop;
      }
      if (this.#isUnusual) return undefined;
    }
    const record: StoredRecord<unknown> = {
      id,
      key,
      rev,
      data,
      createdAt: new Date(createdAt || 0),
      updatedAt: new Date(updatedAt || 0),
      seq,
    };
    if (!Number.isNaN(expiresAt)) record.expiresAt = new Date(expiresAt);
    return record;
  }

  #number(end: number): number {
    let [value, factor] = [0, 1];
    for (let count = 0; count < maxVarintBytes && this.at < end; count++) {
      const byte = this.bytes[this.at++]!;
      if (byte < more) return value + byte * factor;
      value += (byte - more) * factor;
      factor *= more;
    }
    this.#isUnusual = true;
    return 0;
  }

  #text(end: number): string {
    const text = textAt(this.bytes, this.at, end);
    if (text === undefined) this.#isUnusual = true;
    return text ?? '';
  }

  /** A Timestamp in milliseconds. A second one would have to be merged with the one before. */
  #time(end: number, before: number): number {
    if (!Number.isNaN(before)) this.#isUnusual = true;
    let [seconds, nanos] = [0, 0];
    while (this.at < end) {
      const tag = this.bytes[this.at++]!;
      const number = this.#number(end);
      if (tag === tagOf(1, varint)) seconds = number;
      else if (tag === tagOf(2, varint) && number <= maxNanos) nanos = number;
      else this.#isUnusual = true;
    }
    return seconds * 1_000 + Math.round(nanos / 1e6);
  }
}

function jsonOf(bytes: Buffer, start: number, end: number): unknown {
  return start === end ? undefined : JSON.parse(bytes.toString('utf8', start, end));
}

function tagOf(number: number, wire: number): number {
  return number * 8 + wire;
}

type Fields = Record<string, unknown>;

const varint = 0;
const [low7, more] = [0x7f, 0x80];
// Longer varints are left to the library; these fit a number.
const maxVarintBytes = 7;
const maxInt = 2 ** 31 - 1;
// Bits above these cannot be set with a shift.
const shiftedBits = 28;

interface FieldReader {
  readonly name: string;
  readonly wire: number;
  readonly isList: boolean;
  /** A message field: repeated occurrences would have to be merged. */
  readonly isPart: boolean;
  /** Decodes a varint or a byte range; undefined: the library must decode the message. */
  readonly read: (number: number, bytes: Buffer, start: number) => unknown;
}

interface PlainDecoderOptions {
  /** Whether to decode messages inside the message too. Without it they are left to the library. */
  parts?: boolean;
  /** Whether to decode records to stored records, except those of changes. */
  storedRecords?: boolean | undefined;
}

/**
 * Decodes messages with simple fields like the library does, at a fraction of its cost. Filters are
 * decoded to their JSON form. Anything else, including invalid input, is left to the library, which
 * reports the error.
 */
export class PlainDecoder {
  /** By field number. */
  readonly #fields: (FieldReader | undefined)[] = [];
  readonly #zero: Fields;
  readonly #lists: readonly string[];

  constructor(desc: DescMessage, options: PlainDecoderOptions = {}) {
    this.#zero = Object.fromEntries(Object.entries(create(desc)));
    this.#lists = Object.keys(this.#zero).filter((name) => Array.isArray(this.#zero[name]));
    for (const field of desc.fields) this.#fields[field.number] = readerOf(field, options);
  }

  /** Undefined when the library must decode the message. */
  decode(bytes: Buffer, start = 0, end = bytes.length): Fields | undefined {
    const message = this.#fresh();
    let at = start;
    while (at < end) {
      const tag = bytes[at++]!;
      const field = tag < more ? this.#fields[tag >>> 3] : undefined;
      if (!field || (tag & 7) !== field.wire) return undefined;
      let number = 0;
      for (let shift = 0; ; shift += 7) {
        if (shift === 7 * maxVarintBytes || at === end) return undefined;
        const byte = bytes[at++]!;
        if (shift < shiftedBits) number |= (byte & low7) << shift;
        else number += (byte & low7) * 2 ** shift;
        if (byte < more) break;
      }
      if (field.wire === delimited && at + number > end) return undefined;
      const value = field.read(number, bytes, at);
      if (value === undefined) return undefined;
      if (field.wire === delimited) at += number;
      if (field.isPart && message[field.name] !== undefined) return undefined;
      if (field.isList) (message[field.name] as unknown[]).push(value);
      else message[field.name] = value;
    }
    return message;
  }

  #fresh(): Fields {
    const message = { ...this.#zero };
    for (const name of this.#lists) message[name] = [];
    return message;
  }
}

function readerOf(field: DescField, options: PlainDecoderOptions): FieldReader | undefined {
  const isList = field.fieldKind === 'list';
  const kind = isList ? field.listKind : field.fieldKind;
  const name = field.localName;
  if (kind === 'message' && !isList && field.message?.typeName === FilterSchema.typeName) {
    return { name, wire: delimited, isList, isPart: true, read: readFilter };
  }
  if (field.oneof) return undefined;
  if (kind === 'message' && options.parts && field.message) {
    return partReader(field, field.message, options);
  }
  if (kind !== 'scalar' && kind !== 'enum') return undefined;
  const type = kind === 'enum' ? ScalarType.INT32 : field.scalar;
  const read = type === undefined ? undefined : reads.get(type);
  const wire = type === ScalarType.STRING || type === ScalarType.BYTES ? delimited : varint;
  // Repeated numbers may be packed or not.
  if (!read || (isList && wire === varint)) return undefined;
  return { name, wire, isList, isPart: false, read };
}

// Recursive, or represented by the library as plain values.
const leftToLibrary = /^google\.protobuf\.(?:Struct|\w*Value)$/;

function partReader(
  field: DescField,
  desc: DescMessage,
  options: PlainDecoderOptions,
): FieldReader | undefined {
  const { typeName } = desc;
  if (leftToLibrary.test(typeName)) return undefined;
  const isList = field.fieldKind === 'list';
  const part = { name: field.localName, wire: delimited, isList, isPart: !isList };
  if (options.storedRecords && typeName === RecordSchema.typeName) {
    return { ...part, read: readRecord };
  }
  const storedRecords = options.storedRecords && typeName !== ChangeSchema.typeName;
  const decoder = new PlainDecoder(desc, { parts: true, storedRecords });
  return { ...part, read: (length, bytes, start) => decoder.decode(bytes, start, start + length) };
}

function int32(number: number): number | undefined {
  return number > maxInt ? undefined : number;
}

const reads: ReadonlyMap<ScalarType, FieldReader['read']> = new Map<
  ScalarType,
  FieldReader['read']
>([
  [ScalarType.BOOL, (number) => number !== 0],
  [ScalarType.INT32, int32],
  [ScalarType.UINT32, int32],
  [ScalarType.INT64, (number) => BigInt(number)],
  [ScalarType.UINT64, (number) => BigInt(number)],
  [ScalarType.BYTES, (length, bytes, start) => bytes.subarray(start, start + length)],
  [ScalarType.STRING, (length, bytes, start) => textAt(bytes, start, start + length)],
]);
