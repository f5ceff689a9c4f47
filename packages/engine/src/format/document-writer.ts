import { crc32 } from 'node:zlib';
import { type Json, type JsonObject, isFieldName, maxDepth } from '../value/documents.js';

/**
 * A hash of the content of a document, whatever its encoding: a follower and a restored backup,
 * which encode it differently, compute the same hash. Every step is a bijection, so a change of a
 * single character or number always changes the hash. It walks the document because serializing it
 * as JSON only to hash the text took a fifth of a write.
 */
export function contentHash(document: JsonObject): number {
  return endHash(hashObject(document, beginHash));
}

/** The last step of a hash. */
function endHash(started: number): number {
  let hash = started;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

const beginHash = 0x811c9dc5 | 0;
const tags = {
  null: 1,
  true: 2,
  false: 3,
  integer: 4,
  number: 5,
  text: 6,
  array: 7,
  object: 8,
};
/** Beyond this length the native hash is faster than a loop. */
const shortText = 96;

const float = new Float64Array(1);
const words = new Uint32Array(float.buffer);

/** Field names repeat, so their hashes are cached. */
const nameHashes = new Map<string, number>();
const maxNames = 4_096;

function hashObject(object: JsonObject, start: number): number {
  const names = Object.keys(object);
  let hash = mix(mix(start, tags.object), names.length);
  for (const name of names) hash = hashValue(object[name]!, mix(hash, nameHash(name)));
  return hash;
}

function hashValue(value: Json, start: number): number {
  switch (typeof value) {
    case 'string':
      return hashText(value, mix(start, tags.text));
    case 'number':
      return mixNumber(start, value);
    case 'boolean':
      return mix(start, value ? tags.true : tags.false);
    default:
      if (value === null) return mix(start, tags.null);
      return Array.isArray(value) ? hashArray(value, start) : hashObject(value, start);
  }
}

function hashArray(array: readonly Json[], start: number): number {
  let hash = mix(mix(start, tags.array), array.length);
  for (let i = 0; i < array.length; i++) hash = hashValue(array[i]!, hash);
  return hash;
}

function mixNumber(start: number, value: number): number {
  if ((value | 0) === value) return mix(mix(start, tags.integer), value);
  float[0] = value;
  return mix(mix(mix(start, tags.number), words[0]!), words[1]!);
}

function hashText(text: string, start: number): number {
  let hash = mix(start, text.length);
  if (text.length > shortText) return mix(hash, crc32(text));
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash;
}

function nameHash(name: string): number {
  const known = nameHashes.get(name);
  if (known !== undefined) return known;
  const hash = hashText(name, beginHash);
  if (nameHashes.size >= maxNames) nameHashes.clear();
  nameHashes.set(name, hash);
  return hash;
}

function mix(hash: number, value: number): number {
  const mixed = Math.imul(hash ^ value, 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}

const chunkBytes = 32 * 1024;
/** A chunk with less room than this is not used for another document. */
const minRoom = 1_024;
/** The longest value that is not text: a double. */
const valueRoom = 9;
/** Text from this length on is encoded natively. */
const nativeText = 64;

/**
 * Writes documents in the stored format (see codec.ts), in one pass that also checks and hashes
 * them. Documents share chunks, so most need no buffer of their own.
 */
export class DocumentWriter {
  #chunk = Buffer.allocUnsafeSlow(chunkBytes);
  /** Offsets of the document's start and of its next byte. */
  #start = 0;
  #at = 0;
  #hash = 0;
  #isClean = true;

  constructor(
    private readonly shapes: Shapes,
    private readonly saveShapes: (shapes: Buffer) => void,
  ) {}

  /** The hash of the last written document. */
  get contentHash(): number {
    return endHash(this.#hash);
  }

  /**
   * The document after `reserved` bytes for the caller to fill; undefined when it is not clean (see
   * documents.ts).
   */
  write(document: object, reserved: number): Buffer | undefined {
    this.#begin(reserved);
    this.#object(document as JsonObject, 1);
    if (!this.#isClean) {
      this.#at = this.#start;
      this.shapes.discardNew();
      return undefined;
    }
    const bytes = this.#end();
    if (this.shapes.hasNew) this.#saveNewShapes();
    return bytes;
  }

  #saveNewShapes(): void {
    const hash = this.#hash;
    this.#begin(0);
    this.#array(this.shapes.names as Json[], 1);
    this.saveShapes(this.#end());
    this.#hash = hash;
    this.shapes.markSaved();
  }

  #begin(reserved: number): void {
    if (this.#chunk.length - this.#at < minRoom + reserved) this.#newChunk(chunkBytes);
    this.#start = this.#at;
    this.#at += reserved;
    this.#hash = beginHash;
    this.#isClean = true;
  }

  #end(): Buffer {
    const bytes = this.#chunk.subarray(this.#start, this.#at);
    // A long document has its own chunk, so that a short one never keeps it in memory.
    if (this.#chunk.length > chunkBytes) this.#newChunk(chunkBytes);
    return bytes;
  }

  #newChunk(length: number): void {
    this.#chunk = Buffer.allocUnsafeSlow(length);
    this.#at = 0;
  }

  /** Makes room for `count` bytes: moves the document to a chunk that is long enough. */
  #grow(count: number): void {
    const old = this.#chunk;
    const [from, to] = [this.#start, this.#at];
    this.#newChunk(Math.max(chunkBytes, 2 * (to - from + count)));
    this.#start = 0;
    this.#at = old.copy(this.#chunk, 0, from, to);
  }

  #object(object: JsonObject, depth: number): void {
    if (depth > maxDepth || Object.getPrototypeOf(object) !== Object.prototype) {
      this.#isClean = false;
      return;
    }
    const names = Object.keys(object);
    const shape = this.shapes.of(names);
    if (!shape) return this.#map(object, names, depth);
    const { number, hashes } = shape;
    if (this.#at + valueRoom > this.#chunk.length) this.#grow(valueRoom);
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

  /** An object with its field names. */
  #map(object: JsonObject, names: readonly string[], depth: number): void {
    const { length } = names;
    if (this.#at + valueRoom > this.#chunk.length) this.#grow(valueRoom);
    if (length < 0x10) this.#byte(0x80 | length);
    else if (length < 0x10000) this.#head(0xde, length, 2);
    else this.#head(0xdf, length, 4);
    let hash = mix(mix(this.#hash, tags.object), length);
    for (let i = 0; i < length && this.#isClean; i++) {
      const name = names[i]!;
      this.#isClean = isFieldName(name);
      this.#text(name);
      this.#hash = mix(hash, nameHash(name));
      this.#value(object[name], depth);
      hash = this.#hash;
    }
    this.#hash = hash;
  }

  #value(value: Json | undefined, depth: number): void {
    if (this.#at + valueRoom > this.#chunk.length) this.#grow(valueRoom);
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
    if (depth > maxDepth) this.#isClean = false;
    if (length < 0x10) this.#byte(0x90 | length);
    else if (length < 0x10000) this.#head(0xdc, length, 2);
    else this.#head(0xdd, length, 4);
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
    } else if (Math.fround(value) === value) {
      // Numbers of vectors are of this kind: five bytes instead of nine.
      this.#byte(0xca);
      this.#at = this.#chunk.writeFloatBE(value, this.#at);
    } else {
      this.#byte(0xcb);
      this.#at = this.#chunk.writeDoubleBE(value, this.#at);
    }
  }

  #text(text: string): void {
    const { length } = text;
    // At most three bytes per UTF-16 unit, plus a head of five.
    const room = length * 3 + 5;
    if (this.#at + room > this.#chunk.length) this.#grow(room);
    this.#hash = mix(mix(this.#hash, tags.text), length);
    const headLength = textHeadLength(length);
    const from = this.#at + headLength;
    const end = length < nativeText ? this.#shortText(text, from) : this.#longText(text, from);
    this.#textHead(from, headLength, end - from);
  }

  /** Returns the end offset. */
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

  /** Writes the head of a text that begins at `from`, and moves the text if the head is longer. */
  #textHead(from: number, room: number, length: number): void {
    const needed = textHeadLength(length);
    if (needed > room) this.#chunk.copyWithin(from + needed - room, from, from + length);
    if (needed === 1) this.#byte(0xa0 | length);
    else if (needed === 2) this.#head(0xd9, length, 1);
    else if (needed === 3) this.#head(0xda, length, 2);
    else this.#head(0xdb, length, 4);
    this.#at += length;
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

function textHeadLength(length: number): number {
  if (length < 0x20) return 1;
  if (length < 0x100) return 2;
  return length < 0x10000 ? 3 : 5;
}

/** The field names of an object, in their order. */
interface Shape {
  readonly number: number;
  readonly names: readonly string[];
  /** Hashes of the names, for the content hash. */
  readonly hashes: readonly number[];
}

/** Enough for the collections of one database; objects of rarer shapes carry their field names. */
const maxShapes = 256;
/** An object with more fields is a dictionary, whose names hardly ever repeat. */
const maxShapeNames = 128;

/**
 * The shapes of the objects in a database, by number. A stored object has the number of its shape
 * instead of its field names, so a shape must be on disk in or before the commit that uses it.
 */
export class Shapes {
  /** Field names by number. */
  readonly names: (readonly string[])[] = [];
  readonly #byFirstName = new Map<string, Shape[]>();
  #savedCount = 0;

  constructor(stored: readonly (readonly string[])[]) {
    for (const names of stored) this.#add(names);
    this.#savedCount = this.names.length;
  }

  /** Whether there are shapes that are not stored yet. */
  get hasNew(): boolean {
    return this.#savedCount < this.names.length;
  }

  /** The shape with these names; a new one if needed and allowed. */
  of(names: readonly string[]): Shape | undefined {
    const candidates = this.#byFirstName.get(names[0] ?? '');
    if (candidates) {
      for (let i = 0; i < candidates.length; i++) {
        const shape = candidates[i]!;
        if (!isSame(shape.names, names)) continue;
        if (i > 0) {
          candidates[i] = candidates[0]!;
          candidates[0] = shape;
        }
        return shape;
      }
    }
    if (this.names.length >= maxShapes || names.length > maxShapeNames) return undefined;
    return names.every(isFieldName) ? this.#add(names) : undefined;
  }

  markSaved(): void {
    this.#savedCount = this.names.length;
  }

  /** Discards the shapes that are not stored yet. */
  discardNew(): void {
    for (const names of this.names.splice(this.#savedCount)) {
      const first = names[0] ?? '';
      const others = this.#byFirstName.get(first)!.filter((shape) => shape.names !== names);
      this.#byFirstName.set(first, others);
    }
  }

  #add(names: readonly string[]): Shape {
    const shape = { number: this.names.length, names, hashes: names.map(nameHash) };
    this.names.push(names);
    const first = names[0] ?? '';
    const same = this.#byFirstName.get(first);
    if (same) same.push(shape);
    else this.#byFirstName.set(first, [shape]);
    return shape;
  }
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
