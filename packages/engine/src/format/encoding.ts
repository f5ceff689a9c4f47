import { createHash } from 'node:crypto';
import type { Json, JsonObject } from '../value/documents.js';
import { sortedNames } from '../value/order.js';

/**
 * Index values as bytes that sort in the order of `value/order.ts`. Each value is
 *
 *   missing, null, false, true   its tag
 *   number    tag | IEEE-754, the sign bit flipped, all bits of a negative one
 *   string    tag | UTF-8 with 00 written as 00 FF | 00 01
 *   array     tag | each element | 00
 *   object    tag | each name (as a string) and its value, in order of name | 00
 *   element   tag | an element of an array, so that `contains` finds it apart from plain values
 *
 * No encoded value is a prefix of another, so values can be concatenated (a compound index) and
 * followed by the id without changing the order.
 *
 * A value longer than its share of a key is cut there, and 16 bytes of a hash of all of it
 * follow: equal values still have equal bytes, and the order is exact up to the cut. Because no
 * value is a prefix of another, a cut value needs no mark.
 */
export const tags = {
  end: 0x00,
  missing: 0x08,
  null: 0x10,
  false: 0x20,
  true: 0x21,
  number: 0x30,
  string: 0x40,
  array: 0x50,
  object: 0x60,
  element: 0x70,
} as const;

/** Of all values of an entry. With the index prefix and the id it stays under 1,700 bytes. */
const maxEntryBytes = 1664;
const hashLength = 16;
export const maxIndexFields = 16;

/** Maximum size of one of `fields` values before it is cut. */
function shareOf(fields: number): number {
  return Math.floor(maxEntryBytes / fields) - hashLength;
}

// A string of at most this length is faster to write here than through a native call.
const shortText = 32;
const shortEntry = 64;
const maxRetainedScratch = 64 * 1024;

const double = new Float64Array(1);
const words = new Uint32Array(double.buffer);
const [highWord, lowWord] = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1 ? [1, 0] : [0, 1];

/** Writes the values of one entry one after another. Can be reused for any number of entries. */
export class EntryEncoder {
  #bytes = Buffer.allocUnsafe(4096);
  #at = 0;
  readonly #share: number;
  /** A value since `begin` was cut. */
  cut = false;

  constructor(fields: number) {
    this.#share = shareOf(fields);
  }

  begin(): this {
    if (this.#bytes.length > maxRetainedScratch) this.#bytes = Buffer.allocUnsafe(4096);
    this.#at = 0;
    this.cut = false;
    return this;
  }

  /** A copy of what was written. */
  end(): Buffer {
    const length = this.#at;
    const bytes = Buffer.allocUnsafe(length);
    // A view for `set` costs more than copying the few bytes of most entries.
    if (length > shortEntry) bytes.set(this.#bytes.subarray(0, length));
    else for (let i = 0; i < length; i++) bytes[i] = this.#bytes[i]!;
    return bytes;
  }

  /** Bytes that are already encoded. */
  raw(bytes: Uint8Array): this {
    this.#room(bytes.length);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
    return this;
  }

  /** The value of one field; `undefined` is a missing one. */
  value(value: Json | undefined): this {
    const start = this.#at;
    this.#write(value);
    return this.#limit(start);
  }

  /** An element of the array that one field holds. */
  element(value: Json): this {
    const start = this.#at;
    this.#byte(tags.element);
    this.#write(value);
    return this.#limit(start);
  }

  /** The part of `value` that determines its order: all of it, or the part before a cut. */
  bound(value: Json): this {
    const start = this.#at;
    this.#write(value);
    return this.#crop(start);
  }

  /** The common prefix of all strings that start with `text`. */
  textPrefix(text: string): this {
    const start = this.#at;
    this.#byte(tags.string);
    this.#text(text);
    return this.#crop(start);
  }

  #limit(start: number): this {
    if (this.#at - start <= this.#share) return this;
    const whole = this.#bytes.subarray(start, this.#at);
    const hash = createHash('sha256').update(whole).digest();
    this.#crop(start);
    hash.copy(this.#bytes, this.#at, 0, hashLength);
    this.#at += hashLength;
    return this;
  }

  #crop(start: number): this {
    if (this.#at - start <= this.#share) return this;
    this.cut = true;
    this.#at = start + this.#share;
    this.#room(hashLength);
    return this;
  }

  #write(value: Json | undefined): void {
    if (typeof value === 'number') this.#number(value);
    else if (typeof value === 'string') {
      this.#byte(tags.string);
      this.#text(value);
      this.#pair(0x00, 0x01);
    } else if (typeof value === 'boolean') this.#byte(value ? tags.true : tags.false);
    else if (value === undefined) this.#byte(tags.missing);
    else if (value === null) this.#byte(tags.null);
    else if (Array.isArray(value)) this.#array(value);
    else this.#object(value);
  }

  #array(items: Json[]): void {
    this.#byte(tags.array);
    for (const item of items) this.#write(item);
    this.#byte(tags.end);
  }

  #object(object: JsonObject): void {
    this.#byte(tags.object);
    for (const name of sortedNames(object)) {
      this.#write(name);
      this.#write(object[name]);
    }
    this.#byte(tags.end);
  }

  #number(value: number): void {
    this.#room(9);
    double[0] = value === 0 ? 0 : value; // -0 is 0
    let high = words[highWord]!;
    let low = words[lowWord]!;
    if (high & 0x80000000) {
      high = ~high;
      low = ~low;
    } else high ^= 0x80000000;
    const bytes = this.#bytes;
    let at = this.#at;
    bytes[at++] = tags.number;
    bytes[at++] = high >>> 24;
    bytes[at++] = high >>> 16;
    bytes[at++] = high >>> 8;
    bytes[at++] = high;
    bytes[at++] = low >>> 24;
    bytes[at++] = low >>> 16;
    bytes[at++] = low >>> 8;
    bytes[at++] = low;
    this.#at = at;
  }

  #text(text: string): void {
    // At most three bytes of UTF-8 per UTF-16 unit, each of which may need an escape byte.
    this.#room(text.length * 3);
    if (text.length <= shortText && this.#plainText(text)) return;
    const start = this.#at;
    this.#at += this.#bytes.write(text, start);
    if (this.#bytes.subarray(start, this.#at).includes(0)) this.#escape(start);
  }

  /** Writes text that is ASCII without NUL; returns false for any other. */
  #plainText(text: string): boolean {
    const bytes = this.#bytes;
    let at = this.#at;
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      if (unit === 0 || unit > 0x7f) return false;
      bytes[at++] = unit;
    }
    this.#at = at;
    return true;
  }

  #escape(start: number): void {
    const plain = Buffer.from(this.#bytes.subarray(start, this.#at));
    this.#at = start;
    this.#room(plain.length * 2);
    for (const byte of plain) {
      this.#bytes[this.#at++] = byte;
      if (byte === 0) this.#bytes[this.#at++] = 0xff;
    }
  }

  #byte(byte: number): void {
    this.#room(1);
    this.#bytes[this.#at++] = byte;
  }

  #pair(first: number, second: number): void {
    this.#room(2);
    this.#bytes[this.#at++] = first;
    this.#bytes[this.#at++] = second;
  }

  #room(length: number): void {
    if (this.#at + length <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe((this.#at + length) * 2);
    larger.set(this.#bytes.subarray(0, this.#at));
    this.#bytes = larger;
  }
}

/** The smallest bytes that sort after everything with this prefix. */
export function after(prefix: Uint8Array): Buffer {
  let length = prefix.length;
  while (length > 0 && prefix[length - 1] === 0xff) length--;
  // Entries start with a tag, and no tag is FF.
  if (length === 0) throw new RangeError('no bytes sort after this prefix');
  const next = Buffer.from(prefix.subarray(0, length));
  next[length - 1]!++;
  return next;
}
