import { crc32 } from 'node:zlib';
import type { Json, JsonObject } from '../value/documents.js';
import { maxDepth } from '../value/documents.js';
import { beginHash, endHash, mix, mixNumber, nameHash, shortText, tags } from './content-hash.js';

/** The names of a shape; msgpackr notes in `sharedLength` how many of the shapes are stored. */
export type SharedShapes = readonly (readonly string[] | undefined)[] & { sharedLength?: number };

interface Shape {
  number: number;
  names: readonly string[];
  hashes: readonly number[];
}

const chunkBytes = 32 * 1024;
/** A chunk with less room than this is not begun with. */
const minRoom = 1_024;
/** Text from this length on is encoded natively. */
const nativeText = 64;
/** Shapes of higher numbers are not stored. */
const maxShapes = 256;

/**
 * Packs clean documents of known shapes in one walk that also checks and hashes them. The bytes
 * are those of msgpackr, which takes over wherever this one gives up: an unknown shape, a value
 * that JSON cannot write, a document that does not fit into a chunk.
 */
export class DocumentPacker {
  #chunk = Buffer.allocUnsafeSlow(chunkBytes);
  #at = 0;
  #hash = 0;
  #isClean = true;
  #isOutOfRoom = false;
  #shapes: SharedShapes | undefined;
  #shapeCount = 0;
  readonly #byFirstName = new Map<string, Shape[]>();

  constructor(private readonly shapes: () => SharedShapes) {}

  /** The hash of the document that was packed last (see content-hash.ts). */
  get contentHash(): number {
    return endHash(this.#hash);
  }

  /**
   * The document behind `reserved` bytes that are the caller's to fill; undefined when this is a
   * document for msgpackr.
   */
  pack(document: object, reserved: number): Buffer | undefined {
    this.#learnShapes();
    if (this.#shapeCount === 0) return undefined;
    if (this.#chunk.length - this.#at < minRoom) this.#newChunk();
    const packed = this.#tryPack(document, reserved);
    if (packed || !this.#isOutOfRoom || this.#at === 0) return packed;
    this.#newChunk();
    return this.#tryPack(document, reserved);
  }

  #tryPack(document: object, reserved: number): Buffer | undefined {
    const start = this.#at;
    this.#at += reserved;
    this.#hash = beginHash;
    this.#isClean = true;
    this.#isOutOfRoom = false;
    this.#object(document as JsonObject, 1);
    if (this.#isClean && this.#at <= this.#chunk.length) {
      return this.#chunk.subarray(start, this.#at);
    }
    this.#isOutOfRoom ||= this.#isClean;
    this.#at = start;
    return undefined;
  }

  #newChunk(): void {
    this.#chunk = Buffer.allocUnsafeSlow(chunkBytes);
    this.#at = 0;
  }

  #learnShapes(): void {
    const shapes = this.shapes();
    const count = Math.min(shapes.sharedLength ?? 0, maxShapes);
    if (shapes === this.#shapes && count === this.#shapeCount) return;
    this.#shapes = shapes;
    this.#shapeCount = count;
    this.#byFirstName.clear();
    for (let number = 0; number < count; number++) {
      const names = shapes[number];
      const first = names?.[0];
      if (!names || first === undefined) continue;
      const same = this.#byFirstName.get(first);
      const shape = { number, names, hashes: names.map(nameHash) };
      if (same) same.push(shape);
      else this.#byFirstName.set(first, [shape]);
    }
  }

  #shapeOf(names: readonly string[]): Shape | undefined {
    const candidates = this.#byFirstName.get(names[0]!);
    if (!candidates) return undefined;
    for (let i = 0; i < candidates.length; i++) {
      const shape = candidates[i]!;
      if (!isSame(shape.names, names)) continue;
      if (i > 0) {
        candidates[i] = candidates[0]!;
        candidates[0] = shape;
      }
      return shape;
    }
    return undefined;
  }

  #object(object: JsonObject, depth: number): void {
    if (depth > maxDepth || Object.getPrototypeOf(object) !== Object.prototype) {
      this.#isClean = false;
      return;
    }
    const names = Object.keys(object);
    const shape = this.#shapeOf(names);
    if (!shape) {
      this.#isClean = false;
      return;
    }
    const { number, hashes } = shape;
    if (number < 0x20) this.#byte(0x40 + number);
    else {
      this.#byte(0x60 + (number & 0x1f));
      this.#byte((number >> 5) - 1);
    }
    this.#hash = mix(mix(this.#hash, tags.object), names.length);
    for (let i = 0; i < names.length && this.#isClean; i++) {
      this.#hash = mix(this.#hash, hashes[i]!);
      this.#value(object[names[i]!], depth);
    }
  }

  #value(value: Json | undefined, depth: number): void {
    switch (typeof value) {
      case 'string':
        return this.#text(value);
      case 'number':
        return this.#number(value);
      case 'boolean':
        this.#hash = mix(this.#hash, value ? tags.true : tags.false);
        return this.#byte(value ? 0xc3 : 0xc2);
      case 'object':
        if (value === null) {
          this.#hash = mix(this.#hash, tags.null);
          return this.#byte(0xc0);
        }
        return Array.isArray(value)
          ? this.#array(value, depth + 1)
          : this.#object(value, depth + 1);
      default:
        this.#isClean = false;
    }
  }

  #array(array: readonly Json[], depth: number): void {
    const { length } = array;
    if (depth > maxDepth || length > 0xffff) {
      this.#isClean = false;
      return;
    }
    if (length < 0x10) this.#byte(0x90 | length);
    else this.#head(0xdc, length, 2);
    this.#hash = mix(mix(this.#hash, tags.array), length);
    for (let i = 0; i < length && this.#isClean; i++) this.#value(array[i], depth);
  }

  #number(value: number): void {
    if (!Number.isFinite(value) || Object.is(value, -0)) {
      this.#isClean = false;
      return;
    }
    this.#hash = mixNumber(this.#hash, value);
    if (value >>> 0 === value) {
      if (value < 0x40) this.#byte(value);
      else if (value < 0x100) this.#head(0xcc, value, 1);
      else if (value < 0x10000) this.#head(0xcd, value, 2);
      else this.#head(0xce, value, 4);
    } else if (value >> 0 === value) {
      if (value >= -0x20) this.#byte(value & 0xff);
      else if (value >= -0x80) this.#head(0xd0, value & 0xff, 1);
      else if (value >= -0x8000) this.#head(0xd1, value & 0xffff, 2);
      else this.#head(0xd2, value >>> 0, 4);
    } else if (this.#at + 9 <= this.#chunk.length) {
      this.#byte(0xcb);
      this.#at = this.#chunk.writeDoubleBE(value, this.#at);
    } else this.#giveUpForRoom();
  }

  #text(text: string): void {
    const { length } = text;
    // At most three bytes for a unit of UTF-16, and three before them.
    if (this.#at + length * 3 + 3 > this.#chunk.length) return this.#giveUpForRoom();
    this.#hash = mix(mix(this.#hash, tags.text), length);
    const headLength = length < 0x20 ? 1 : length < 0x100 ? 2 : 3;
    const from = this.#at + headLength;
    const end = length < nativeText ? this.#shortText(text, from) : this.#longText(text, from);
    this.#textHead(from, headLength, end - from);
  }

  /** Returns where it ends. */
  #shortText(text: string, from: number): number {
    const chunk = this.#chunk;
    let hash = this.#hash;
    let at = from;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code >= 0x80) return this.#longText(text, from);
      hash = Math.imul(hash ^ code, 0x01000193);
      chunk[at++] = code;
    }
    this.#hash = hash;
    return at;
  }

  #longText(text: string, from: number): number {
    if (!text.isWellFormed()) this.#isClean = false;
    let hash = this.#hash;
    if (text.length > shortText) hash = mix(hash, crc32(text));
    else {
      for (let i = 0; i < text.length; i++) {
        hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
      }
    }
    this.#hash = hash;
    return from + this.#chunk.write(text, from);
  }

  /** Writes the head of a text that lies at `from`, and moves the text if the head is longer. */
  #textHead(from: number, room: number, length: number): void {
    const needed = length < 0x20 ? 1 : length < 0x100 ? 2 : 3;
    if (needed > room) this.#chunk.copyWithin(from + needed - room, from, from + length);
    if (needed === 1) this.#byte(0xa0 | length);
    else if (needed === 2) this.#head(0xd9, length, 1);
    else this.#head(0xda, length, 2);
    this.#at += length;
  }

  #giveUpForRoom(): void {
    this.#isClean = false;
    this.#isOutOfRoom = true;
  }

  #byte(byte: number): void {
    this.#chunk[this.#at++] = byte;
  }

  #head(token: number, value: number, length: number): void {
    const chunk = this.#chunk;
    chunk[this.#at++] = token;
    if (length === 4) {
      chunk[this.#at++] = value >>> 24;
      chunk[this.#at++] = value >>> 16;
    }
    if (length >= 2) chunk[this.#at++] = value >>> 8;
    chunk[this.#at++] = value;
  }
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
