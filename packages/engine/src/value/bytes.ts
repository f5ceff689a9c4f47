/** A 64-bit hash in two 32-bit halves, to detect damage and divergence. It is not cryptographic. */
export interface Hash64 {
  high: number;
  low: number;
}

export const emptyHash: Hash64 = { high: 0x243f6a88, low: 0x85a308d3 };

/** Hashes a sequence of texts and numbers. */
export class Hasher {
  #high: number;
  #low: number;

  constructor(seed: Hash64 = emptyHash) {
    this.#high = seed.high ^ 0xdeadbeef;
    this.#low = seed.low ^ 0x41c6ce57;
  }

  text(text: string): this {
    let high = this.#high;
    let low = this.#low;
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      high = Math.imul(high ^ unit, 0x9e3779b1);
      low = Math.imul(low ^ unit, 0x5f356495);
    }
    this.#high = high;
    this.#low = low;
    // The length terminates the text, so that "ab","c" is not "a","bc".
    return this.number(text.length);
  }

  /** An integer from 0 to 2^53. */
  number(value: number): this {
    const upper = (value / 0x100000000) | 0;
    const lower = value | 0;
    this.#high = Math.imul(Math.imul(this.#high ^ lower, 0x9e3779b1) ^ upper, 0x85ebca6b);
    this.#low = Math.imul(Math.imul(this.#low ^ upper, 0x5f356495) ^ lower, 0xc2b2ae35);
    this.#high ^= this.#high >>> 15;
    this.#low ^= this.#low >>> 13;
    return this;
  }

  result(): Hash64 {
    const high = this.#high;
    const low = this.#low;
    return {
      high:
        (Math.imul(high ^ (high >>> 16), 0x85ebca6b) ^
          Math.imul(low ^ (low >>> 13), 0xc2b2ae35)) >>>
        0,
      low:
        (Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^
          Math.imul(high ^ (high >>> 13), 0xc2b2ae35)) >>>
        0,
    };
  }
}

export function hashText(text: string, seed: Hash64 = emptyHash): Hash64 {
  return new Hasher(seed).text(text).result();
}

export function hashToBigInt(hash: Hash64): bigint {
  return (BigInt(hash.high) << 32n) | BigInt(hash.low);
}

const [minus, zero] = [0x2d, 0x30];

/** A buffer that is written sequentially and grows on demand. */
export class GrowingBytes {
  bytes: Buffer;
  /** Of the same bytes: writing four at a time is as cheap as one. */
  view: DataView;
  /** Offset of the next byte. Reserve room before moving it. */
  at = 0;

  constructor(firstBytes: number) {
    this.bytes = Buffer.allocUnsafeSlow(firstBytes);
    this.view = viewOf(this.bytes);
  }

  /** Reserves room for `count` bytes. */
  reserve(count: number): void {
    if (this.at + count > this.bytes.length) this.#grow(count);
  }

  /** Appends bytes. */
  put(source: Uint8Array): void {
    this.reserve(source.length);
    this.bytes.set(source, this.at);
    this.at += source.length;
  }

  /** Appends a part of other bytes. For short ones: a native call costs more. */
  append(source: Uint8Array, start: number, end: number): void {
    this.reserve(end - start);
    const { bytes, at } = this;
    if (end - start > 64) bytes.set(source.subarray(start, end), at);
    else for (let i = start; i < end; i++) bytes[at + i - start] = source[i]!;
    this.at = at + end - start;
  }

  /** Appends text with one byte per character. For short ones: a native call costs more. */
  latin1(text: string, from = 0): void {
    this.reserve(text.length - from);
    const { bytes } = this;
    let { at } = this;
    for (let i = from; i < text.length; i++) bytes[at++] = text.charCodeAt(i);
    this.at = at;
  }

  /** Appends an integer from 0 to 2^53, seven bits in each byte, the lowest first. */
  varint(value: number): void {
    this.reserve(8);
    let rest = value;
    // Whole numbers of 31 bits need no division.
    for (; rest > 0x7f && rest <= 0x7fffffff; rest >>>= 7) {
      this.bytes[this.at++] = (rest & 0x7f) | 0x80;
    }
    for (; rest > 0x7f; rest = Math.floor(rest / 0x80))
      this.bytes[this.at++] = (rest % 0x80) | 0x80;
    this.bytes[this.at++] = rest;
  }

  /** A copy of what was written. */
  copy(): Buffer {
    return Buffer.from(this.bytes.subarray(0, this.at));
  }

  /** Appends an integer of at most 2^53 in decimal. Reserve 17 bytes first. */
  digits(value: number): void {
    const out = this.bytes;
    let rest = value;
    if (rest < 0) {
      out[this.at++] = minus;
      rest = -rest;
    }
    let digits = 1;
    for (let limit = 10; rest >= limit; limit *= 10) digits++;
    const end = this.at + digits;
    for (let at = end - 1; at >= this.at; at--) {
      const tenth = Math.floor(rest / 10);
      out[at] = zero + rest - tenth * 10;
      rest = tenth;
    }
    this.at = end;
  }

  #grow(count: number): void {
    const larger = Buffer.allocUnsafeSlow(2 * (this.at + count));
    this.bytes.copy(larger, 0, 0, this.at);
    this.bytes = larger;
    this.view = viewOf(larger);
  }
}

function viewOf({ buffer, byteOffset, byteLength }: Buffer): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}
