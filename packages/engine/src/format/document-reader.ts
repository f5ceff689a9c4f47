import { isFieldName, type Json, type JsonObject } from '../value/documents.js';
import type { Shapes } from './document-writer.js';

/**
 * Strings are slices of one string decoded from this many bytes, which takes half the time of
 * decoding each of them. A longer one would stay in memory for each slice that is kept.
 */
const windowBytes = 4_096;
/** A longer string is decoded alone. */
const maxSliced = 512;
/** Short ASCII is cheaper to decode here than natively. */
const maxGathered = 20;
const noBytes = Buffer.alloc(0);
const failed = -1;
const absent = -2;

/** Reads documents in the stored format (see codec.ts): whole, or one field without the others. */
export class DocumentReader {
  #bytes: Buffer = noBytes;
  #start = 0;
  #at = 0;
  #end = 0;
  /** Bytes of the document from `#windowStart` on, as one character each. */
  #window = '';
  #windowStart = 0;
  /** Shapes that the document defines itself, from `firstOwnShape` on. */
  #ownShapes: (readonly string[])[] | undefined;

  /** By shape number: creates an object from the next values. */
  readonly #makers: (ObjectMaker | undefined)[] = [];
  readonly #next = (): Json => this.#value();

  constructor(private readonly shapes: Shapes) {}

  /** The value between `start` and `end`. Throws when the bytes are damaged. */
  read(bytes: Uint8Array, start: number, end: number): Json {
    this.#bytes = asBuffer(bytes);
    this.#start = this.#at = start;
    this.#end = end;
    this.#ownShapes = undefined;
    this.#openWindow(start);
    const value = this.#value();
    if (this.#at !== end) throw damaged(this.#at - start);
    this.#bytes = noBytes;
    return value;
  }

  /** A top-level field; undefined when the document has no such field. */
  field(bytes: Uint8Array, start: number, end: number, name: string): Json | undefined {
    const from = this.#find(bytes, start, end, name);
    if (from === absent) return undefined;
    if (from === failed) return this.#fieldOfWhole(bytes, start, end, name);
    const token = bytes[from]!;
    if (token < 0x40) return token;
    if (token >= 0xe0) return token - 0x100;
    if (token >= 0xa0 && token < 0xc0) return textAt(bytes, from + 1, token - 0xa0);
    switch (token) {
      case 0xc0:
        return null;
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xcc:
        return bytes[from + 1]!;
      case 0xcd:
        return uint16(bytes, from + 1);
      case 0xce:
        return uint32(bytes, from + 1);
      case 0xca:
        return asBuffer(bytes).readFloatBE(from + 1);
      case 0xcb:
        return asBuffer(bytes).readDoubleBE(from + 1);
      case 0xd9:
        return textAt(bytes, from + 2, bytes[from + 1]!);
      default: {
        const after = this.#skip(bytes, from, 1);
        if (after === failed) return this.#fieldOfWhole(bytes, start, end, name);
        return this.read(bytes, from, after);
      }
    }
  }

  /** Whether a top-level field is this text, given as it is and as bytes. */
  isText(
    bytes: Uint8Array,
    start: number,
    end: number,
    name: string,
    text: string,
    utf8: Uint8Array,
  ): boolean {
    const from = this.#find(bytes, start, end, name);
    if (from === failed) return this.#fieldOfWhole(bytes, start, end, name) === text;
    if (from === absent) return false;
    const at = textStart(bytes, from, utf8.length);
    if (at === failed || at + utf8.length > end) return false;
    for (let i = 0; i < utf8.length; i++) if (bytes[at + i] !== utf8[i]) return false;
    return true;
  }

  /** For documents that define shapes of their own. */
  #fieldOfWhole(bytes: Uint8Array, start: number, end: number, name: string): Json | undefined {
    const document = this.read(bytes, start, end) as JsonObject;
    return Object.hasOwn(document, name) ? document[name] : undefined;
  }

  /** The offset of the field. */
  #find(bytes: Uint8Array, start: number, end: number, name: string): number {
    const token = bytes[start]!;
    if (token < 0x40 || token >= 0x80) return failed;
    const names = this.shapes.names[shapeNumber(bytes, start)];
    if (!names) return failed;
    const index = names.indexOf(name);
    if (index < 0) return absent;
    const first = start + shapeLength(token);
    const from = index === 0 ? first : this.#skip(bytes, first, index);
    return from < end ? from : failed;
  }

  /** The offset after `count` values. */
  #skip(bytes: Uint8Array, start: number, count: number): number {
    let at = start;
    let left = count;
    while (left > 0) {
      left--;
      const token = bytes[at]!;
      if (token < 0x40 || token >= 0xe0) at += 1;
      else if (token < 0x80) {
        const names = this.shapes.names[shapeNumber(bytes, at)];
        if (!names) return failed;
        left += names.length;
        at += shapeLength(token);
      } else if (token < 0x90) {
        left += 2 * (token - 0x80);
        at += 1;
      } else if (token < 0xa0) {
        left += token - 0x90;
        at += 1;
      } else if (token < 0xc0) at += 1 + token - 0xa0;
      else {
        const length = fixedLengths[token - 0xc0]!;
        if (length > 0) at += length;
        else if (token === 0xd9) at += 2 + bytes[at + 1]!;
        else if (token === 0xda) at += 3 + uint16(bytes, at + 1);
        else if (token === 0xdb) at += 5 + uint32(bytes, at + 1);
        else if (token === 0xdc || token === 0xde) {
          left += uint16(bytes, at + 1) * (token === 0xde ? 2 : 1);
          at += 3;
        } else if (token === 0xdd || token === 0xdf) {
          left += uint32(bytes, at + 1) * (token === 0xdf ? 2 : 1);
          at += 5;
        } else return failed;
      }
    }
    return at;
  }

  #value(): Json {
    const bytes = this.#bytes;
    const at = this.#at++;
    const token = bytes[at];
    // A read beyond the end of the document is detected after it.
    if (token === undefined) throw damaged(at - this.#start);
    if (token < 0x40) return token;
    if (token < 0x80) return this.#shaped(token);
    if (token >= 0xe0) return token - 0x100;
    if (token >= 0xa0 && token < 0xc0) return this.#text(token - 0xa0);
    if (token >= 0x90 && token < 0xa0) return this.#array(token - 0x90);
    if (token < 0x90) return this.#map(token - 0x80);
    switch (token) {
      case 0xc0:
        return null;
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xca:
        return bytes.readFloatBE(this.#skipped(4));
      case 0xcb:
        return bytes.readDoubleBE(this.#skipped(8));
      case 0xcc:
        return this.#uint(1);
      case 0xcd:
        return this.#uint(2);
      case 0xce:
        return this.#uint(4);
      case 0xcf:
        return Number(bytes.readBigUInt64BE(this.#skipped(8)));
      case 0xd0:
        return (this.#uint(1) << 24) >> 24;
      case 0xd1:
        return (this.#uint(2) << 16) >> 16;
      case 0xd2:
        return this.#uint(4) | 0;
      case 0xd3:
        return Number(bytes.readBigInt64BE(this.#skipped(8)));
      case 0xd4:
      case 0xd5:
        return this.#defined(token);
      case 0xd9:
        return this.#text(this.#uint(1));
      case 0xda:
        return this.#text(this.#uint(2));
      case 0xdb:
        return this.#text(this.#uint(4));
      case 0xdc:
        return this.#array(this.#uint(2));
      case 0xdd:
        return this.#array(this.#uint(4));
      case 0xde:
        return this.#map(this.#uint(2));
      case 0xdf:
        return this.#map(this.#uint(4));
      default:
        throw damaged(at - this.#start);
    }
  }

  #shaped(token: number): Json {
    const number = token < 0x60 ? token - 0x40 : token - 0x40 + this.#uint(1) * 32;
    const names = this.shapes.names[number];
    if (names) return (this.#makers[number] ??= objectMaker(names))(this.#next);
    const own = this.#ownShapes?.[number];
    if (!own) throw damaged(this.#at - this.#start);
    return objectOf(own, this.#next);
  }

  /** An object whose shape is written before it; later objects of the document may use it too. */
  #defined(token: number): Json {
    if (this.#uint(1) !== shapeExtension) throw damaged(this.#at - this.#start);
    const low = this.#uint(1);
    const number = token === 0xd4 ? low - 0x40 : (low & 0x1f) + 32 + this.#uint(1) * 32;
    const names = this.#value();
    if (!Array.isArray(names) || !names.every((name) => typeof name === 'string')) {
      throw damaged(this.#at - this.#start);
    }
    (this.#ownShapes ??= [])[number] = names;
    return objectOf(names, this.#next);
  }

  #map(count: number): Json {
    const object: JsonObject = {};
    for (let i = 0; i < count; i++) {
      const name = this.#value();
      if (typeof name !== 'string') throw damaged(this.#at - this.#start);
      object[name] = this.#value();
    }
    return object;
  }

  #array(length: number): Json {
    const array: Json[] = [];
    for (let i = 0; i < length; i++) array.push(this.#value());
    return array;
  }

  #text(length: number): string {
    const bytes = this.#bytes;
    const from = this.#at;
    const end = (this.#at = from + length);
    if (length > maxSliced) return textAt(bytes, this.#checked(from), length);
    for (let i = from; i < end; i++) {
      if (bytes[i]! >= 0x80) return bytes.toString('utf8', from, end);
    }
    if (end > this.#windowStart + windowBytes) this.#openWindow(from);
    return this.#window.substring(from - this.#windowStart, end - this.#windowStart);
  }

  #openWindow(start: number): void {
    this.#windowStart = start;
    this.#window = this.#bytes.toString('latin1', start, Math.min(start + windowBytes, this.#end));
  }

  /** Skips the next bytes, and returns their offset. */
  #skipped(length: number): number {
    const from = this.#at;
    this.#at = from + length;
    return this.#checked(from);
  }

  #checked(from: number): number {
    if (this.#at > this.#end) throw damaged(from - this.#start);
    return from;
  }

  #uint(length: number): number {
    let value = 0;
    for (const end = this.#at + length; this.#at < end; this.#at++) {
      value = value * 256 + (this.#bytes[this.#at] ?? 0);
    }
    return value;
  }
}

type ObjectMaker = (next: () => Json) => JsonObject;

/**
 * Generates an object literal, which V8 creates faster than an object that gets its fields one by
 * one: saves 20 to 35 % of the time to decode a record.
 */
function objectMaker(names: readonly string[]): ObjectMaker {
  if (!names.every(isFieldName)) throw damaged(0);
  const fields = names.map((name) => `${JSON.stringify(name)}: next()`);
  try {
    // oxlint-disable-next-line typescript/no-implied-eval -- names are JSON strings, nothing else
    return new Function('next', `return { ${fields.join(', ')} };`) as ObjectMaker;
  } catch (error) {
    // Node was started with --disallow-code-generation-from-strings.
    if (error instanceof EvalError) return (next) => objectOf(names, next);
    throw error;
  }
}

function objectOf(names: readonly string[], next: () => Json): JsonObject {
  const object: JsonObject = {};
  for (let i = 0; i < names.length; i++) object[names[i]!] = next();
  return object;
}

/** The type of the extension that defines a shape: "r". */
const shapeExtension = 0x72;

// Total length of fixed-length values, by token from 0xc0; 0: not fixed-length.
const fixedLengths = new Uint8Array(32);
for (const token of [0xc0, 0xc2, 0xc3]) fixedLengths[token - 0xc0] = 1;
for (const token of [0xcc, 0xd0]) fixedLengths[token - 0xc0] = 2;
for (const token of [0xcd, 0xd1]) fixedLengths[token - 0xc0] = 3;
for (const token of [0xca, 0xce, 0xd2]) fixedLengths[token - 0xc0] = 5;
for (const token of [0xcb, 0xcf, 0xd3]) fixedLengths[token - 0xc0] = 9;

export function shapeNumber(bytes: Uint8Array, at: number): number {
  const token = bytes[at]!;
  return token < 0x60 ? token - 0x40 : token - 0x40 + bytes[at + 1]! * 32;
}

/** Shapes from the 33rd on take two bytes. */
export function shapeLength(token: number): number {
  return token < 0x60 ? 1 : 2;
}

/** The offset of the bytes of a text of this length; `failed` when the value is not such a text. */
function textStart(bytes: Uint8Array, at: number, length: number): number {
  const token = bytes[at]!;
  if (token >= 0xa0 && token < 0xc0) return token - 0xa0 === length ? at + 1 : failed;
  if (token === 0xd9) return bytes[at + 1] === length ? at + 2 : failed;
  if (token === 0xda) return uint16(bytes, at + 1) === length ? at + 3 : failed;
  return token === 0xdb && uint32(bytes, at + 1) === length ? at + 5 : failed;
}

function textAt(bytes: Uint8Array, start: number, length: number): string {
  if (length <= maxGathered) {
    let gathered = '';
    let at = start;
    for (; at < start + length; at++) {
      const unit = bytes[at]!;
      if (unit >= 0x80) break;
      gathered += String.fromCharCode(unit);
    }
    if (at === start + length) return gathered;
  }
  return asBuffer(bytes).toString('utf8', start, start + length);
}

export function uint16(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!;
}

export function uint32(bytes: Uint8Array, at: number): number {
  return uint16(bytes, at) * 0x10000 + uint16(bytes, at + 2);
}

function asBuffer(bytes: Uint8Array): Buffer {
  if (Buffer.isBuffer(bytes)) return bytes;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function damaged(at: number): Error {
  return new Error(`The stored document is damaged at byte ${at}.`);
}
