import { GrowingBytes } from '../value/bytes.js';
import { shapeLength, shapeNumber, uint16, uint32, DocumentReader } from './document-reader.js';
import { Shapes, DocumentWriter } from './document-writer.js';
import { toDocument, type Json, type JsonObject } from '../value/documents.js';

const failed = -1;
const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];
const [minus, zero, point] = [0x2d, 0x30, 0x2e];
// The longest JavaScript number, such as -1.2345678901234567e-300, and a comma.
const numberRoom = 32;
// A control character takes six bytes; text has two quotes and a comma.
const escapeRoom = 6;
const wordBytes = 4;

/** The text before a value of a shape: `{"name":` for the first, `,"next":` for the others. */
interface Label {
  /** As four-byte words, the last one padded. */
  readonly words: Int32Array;
  readonly length: number;
}

interface Labels {
  readonly names: readonly string[];
  readonly texts: readonly Label[];
}

/**
 * Writes an encoded document as JSON text without decoding it into an object: the same bytes as
 * `JSON.stringify` of the decoded document.
 */
export class JsonWriter {
  #to!: GrowingBytes;
  #bytes: Uint8Array | undefined;
  #memory: ArrayBufferLike = new ArrayBuffer(0);
  #source = new DataView(this.#memory);
  /** Offset of the input in `#source`, which covers the whole underlying buffer. */
  #base = 0;
  /** End of the document. */
  #end = 0;
  readonly #labels: (Labels | undefined)[] = [];

  constructor(private readonly shapes: Shapes) {}

  /** False, and nothing is written, when the document defines shapes of its own or is damaged. */
  write(to: GrowingBytes, bytes: Uint8Array, start: number, end: number): boolean {
    // Records share a buffer, so mostly it is the same as for the record before.
    if (bytes !== this.#bytes) this.#readFrom(bytes);
    this.#end = end;
    this.#to = to;
    const before = to.at;
    if (this.#value(bytes, start) === end) return true;
    to.at = before;
    return false;
  }

  /**
   * Node is slow to find the buffer of a typed array, so it is looked up only when the array
   * changes.
   */
  #readFrom(bytes: Uint8Array): void {
    const { buffer } = bytes;
    if (buffer !== this.#memory) {
      this.#memory = buffer;
      this.#source = new DataView(buffer);
    }
    this.#base = bytes.byteOffset;
    this.#bytes = bytes;
  }

  /** Writes the value at `at` and returns the offset after it. */
  #value(bytes: Uint8Array, at: number): number {
    const token = bytes[at]!;
    if (token >= 0xa0 && token < 0xc0) return this.#text(bytes, at + 1, token - 0xa0);
    if (token < 0x40) return this.#whole(token, at + 1);
    if (token < 0x80) return this.#shape(bytes, at, token);
    if (token < 0x90) return this.#map(bytes, at + 1, token - 0x80);
    if (token < 0xa0) return this.#list(bytes, at + 1, token - 0x90);
    if (token >= 0xe0) return this.#whole(token - 0x100, at + 1);
    switch (token) {
      case 0xc0:
        return this.#word('null', at);
      case 0xc2:
        return this.#word('false', at);
      case 0xc3:
        return this.#word('true', at);
      case 0xca:
        return this.#float(at + 5, 4);
      case 0xcb:
        return this.#float(at + 9, 8);
      case 0xcc:
        return this.#whole(bytes[at + 1]!, at + 2);
      case 0xcd:
        return this.#whole(uint16(bytes, at + 1), at + 3);
      case 0xce:
        return this.#whole(uint32(bytes, at + 1), at + 5);
      case 0xd0:
        return this.#whole((bytes[at + 1]! << 24) >> 24, at + 2);
      case 0xd1:
        return this.#whole((uint16(bytes, at + 1) << 16) >> 16, at + 3);
      case 0xd2:
        return this.#whole(uint32(bytes, at + 1) | 0, at + 5);
      case 0xd9:
        return this.#text(bytes, at + 2, bytes[at + 1]!);
      case 0xda:
        return this.#text(bytes, at + 3, uint16(bytes, at + 1));
      case 0xdb:
        return this.#text(bytes, at + 5, uint32(bytes, at + 1));
      case 0xdc:
        return this.#list(bytes, at + 3, uint16(bytes, at + 1));
      case 0xdd:
        return this.#list(bytes, at + 5, uint32(bytes, at + 1));
      case 0xde:
        return this.#map(bytes, at + 3, uint16(bytes, at + 1));
      case 0xdf:
        return this.#map(bytes, at + 5, uint32(bytes, at + 1));
      default:
        return failed;
    }
  }

  #shape(bytes: Uint8Array, start: number, token: number): number {
    const texts = this.#labelsOf(shapeNumber(bytes, start));
    if (!texts) return failed;
    let at = start + shapeLength(token);
    if (texts.length === 0) return this.#word('{}', at - 1);
    for (let i = 0; i < texts.length; i++) {
      this.#label(texts[i]!);
      at = this.#value(bytes, at);
      if (at === failed) return failed;
    }
    this.#byte(closeObject);
    return at;
  }

  #label({ words, length }: Label): void {
    const to = this.#to;
    to.reserve(length + wordBytes);
    const { view, at } = to;
    for (let i = 0; i < words.length; i++) view.setInt32(at + wordBytes * i, words[i]!, true);
    to.at = at + length;
  }

  #labelsOf(number: number): readonly Label[] | undefined {
    const names = this.shapes.names[number];
    if (!names) return undefined;
    const known = this.#labels[number];
    if (known && known.names === names) return known.texts;
    const texts = names.map((name, i) => labelOf(`${i === 0 ? '{' : ','}${JSON.stringify(name)}:`));
    this.#labels[number] = { names, texts };
    return texts;
  }

  #map(bytes: Uint8Array, start: number, count: number): number {
    let at = start;
    this.#byte(openObject);
    for (let i = 0; i < count; i++) {
      if (i > 0) this.#byte(comma);
      if (!isText(bytes[at]!)) return failed;
      at = this.#value(bytes, at);
      this.#byte(colon);
      at = this.#value(bytes, at);
      if (at === failed) return failed;
    }
    this.#byte(closeObject);
    return at;
  }

  #list(bytes: Uint8Array, start: number, count: number): number {
    let at = start;
    this.#byte(openList);
    for (let i = 0; i < count; i++) {
      if (i > 0) this.#byte(comma);
      at = this.#value(bytes, at);
      if (at === failed) return failed;
    }
    this.#byte(closeList);
    return at;
  }

  #text(bytes: Uint8Array, start: number, length: number): number {
    if (start + length > this.#end) return failed;
    const to = this.#to;
    to.reserve(length * escapeRoom + 2);
    to.bytes[to.at++] = quote;
    if (length < wordBytes || !this.#plainText(start, length)) this.#anyText(bytes, start, length);
    to.bytes[to.at++] = quote;
    return start + length;
  }

  /** Copies text that needs no escapes; returns false when it does. */
  #plainText(start: number, length: number): boolean {
    const to = this.#to;
    const target = to.view;
    const source = this.#source;
    const from = this.#base + start;
    const { at } = to;
    // The last word may overlap the one before it, so that it has four bytes.
    const last = length - wordBytes;
    for (let i = 0; ; i = Math.min(i + wordBytes, last)) {
      const word = source.getInt32(from + i, true);
      if (hasSpecial(word)) return false;
      target.setInt32(at + i, word, true);
      if (i === last) break;
    }
    to.at = at + length;
    return true;
  }

  #anyText(bytes: Uint8Array, start: number, length: number): void {
    const { bytes: out } = this.#to;
    let { at } = this.#to;
    for (let i = start; i < start + length; i++) {
      const byte = bytes[i]!;
      if (byte >= 0x20 && byte !== quote && byte !== backslash) out[at++] = byte;
      else at += out.write(escapes[byte]!, at, 'latin1');
    }
    this.#to.at = at;
  }

  #whole(value: number, next: number): number {
    this.#to.reserve(numberRoom);
    this.#to.digits(value);
    return next;
  }

  #float(next: number, length: 4 | 8): number {
    if (next > this.#end) return failed;
    const at = this.#base + next - length;
    const value = length === 4 ? this.#source.getFloat32(at) : this.#source.getFloat64(at);
    if (!Number.isFinite(value)) return failed;
    const to = this.#to;
    to.reserve(numberRoom);
    const tenths = Math.round(value * 10);
    // No two numbers with so few digits are the same double, so this text is the shortest.
    if (tenths / 10 === value && Math.abs(tenths) < maxTenths) this.#oneDecimal(value, tenths);
    else {
      const text = String(value);
      for (let i = 0; i < text.length; i++) to.bytes[to.at++] = text.charCodeAt(i);
    }
    return next;
  }

  #oneDecimal(value: number, tenths: number): void {
    const to = this.#to;
    const whole = Math.trunc(tenths / 10);
    if (value < 0 && whole === 0) to.bytes[to.at++] = minus;
    to.digits(whole);
    const decimal = Math.abs(tenths - whole * 10);
    if (decimal === 0) return;
    to.bytes[to.at++] = point;
    to.bytes[to.at++] = zero + decimal;
  }

  /** Writes the literal that the byte at `at` encodes. */
  #word(word: string, at: number): number {
    const to = this.#to;
    to.reserve(word.length);
    for (let i = 0; i < word.length; i++) to.bytes[to.at++] = word.charCodeAt(i);
    return at + 1;
  }

  #byte(byte: number): void {
    const to = this.#to;
    to.reserve(1);
    to.bytes[to.at++] = byte;
  }
}

const maxTenths = 2 ** 31;

function labelOf(text: string): Label {
  const { length } = Buffer.from(text);
  const filled = Buffer.alloc(Math.ceil(length / wordBytes) * wordBytes);
  filled.write(text);
  const words = new Int32Array(filled.length / wordBytes);
  for (let i = 0; i < words.length; i++) words[i] = filled.readInt32LE(wordBytes * i);
  return { words, length };
}

/** Whether one of four bytes is a control character, a quote or a backslash. */
function hasSpecial(word: number): boolean {
  const quotes = word ^ 0x22222222;
  const backslashes = word ^ 0x5c5c5c5c;
  // Subtracting a number from a smaller byte sets its highest bit, where it was not set before.
  return (
    ((((word - 0x20202020) & ~word) |
      ((quotes - 0x01010101) & ~quotes) |
      ((backslashes - 0x01010101) & ~backslashes)) &
      0x80808080) !==
    0
  );
}

/** The JSON escapes of characters that must be escaped. */
const escapes: string[] = [];
for (const code of [...Array(0x20).keys(), quote, backslash]) {
  escapes[code] = JSON.stringify(String.fromCharCode(code)).slice(1, -1);
}

function isText(token: number): boolean {
  return (token >= 0xa0 && token < 0xc0) || (token >= 0xd9 && token <= 0xdb);
}

/**
 * The stored format of documents: msgpack, where an object is the number of its shape followed by
 * the values of its fields. Documents of 0.1.0 define their own shapes.
 *
 *   00-3f  the number itself            80-8f de df  map: an object with its field names
 *   40-5f  object of shape 0 to 31      90-9f dc dd  array
 *   60-7f  object of shape 32 to 287,   a0-bf d9-db  text
 *          with a second byte           e0-ff        -32 to -1
 *   c0 c2 c3 ca-cf d0-d3  null, false, true and numbers, as in msgpack
 *   d4 d5  with type "r": a shape that the document defines itself; only read, until 1.0.0
 */
/** What a codec that migrates documents needs to know of their record. */
export interface DecodedRecord {
  readonly id: string;
  readonly seq: number;
}

export interface Codec {
  decode(bytes: Uint8Array, start: number, end: number, record?: DecodedRecord): JsonObject;
  /** One top-level field alone. Absent: the whole document must be decoded. */
  field?(bytes: Uint8Array, start: number, end: number, name: string): Json | undefined;
  /** Whether one top-level field is this text, given as it is and as bytes. */
  isText?(
    bytes: Uint8Array,
    start: number,
    end: number,
    name: string,
    text: string,
    utf8: Uint8Array,
  ): boolean;
  /** The document as JSON text. Valid until the next call: copy it to keep it. */
  json(bytes: Uint8Array, start: number, end: number, record?: DecodedRecord): Buffer;
  /** Writes that text. */
  writeJson(
    to: GrowingBytes,
    bytes: Uint8Array,
    start: number,
    end: number,
    record?: DecodedRecord,
  ): void;
}

/** Where the shapes of a database are stored. */
interface ShapeStore {
  load(): Uint8Array | undefined;
  save(shapes: Uint8Array): void;
}

const firstTextBytes = 64 * 1024;
const maxCachedBytes = 1024 * 1024;

/** The codec of a database. */
export class StoreCodec implements Codec {
  readonly writer: DocumentWriter;
  readonly #reader: DocumentReader;
  readonly #json: JsonWriter;
  #text = new GrowingBytes(firstTextBytes);

  constructor(store: ShapeStore) {
    const bytes = store.load();
    const stored = bytes && new DocumentReader(new Shapes([])).read(bytes, 0, bytes.length);
    const shapes = new Shapes((stored as string[][] | undefined) ?? []);
    this.writer = new DocumentWriter(shapes, (names) => store.save(names));
    this.#reader = new DocumentReader(shapes);
    this.#json = new JsonWriter(shapes);
  }

  /** Encodes a document that should be clean: refuses BAD_DATA when it is not. */
  encode(data: JsonObject): Buffer {
    return this.writer.write(data, 0) ?? this.writer.write(toDocument(data), 0)!;
  }

  decode(bytes: Uint8Array, start: number, end: number): JsonObject {
    return this.#reader.read(bytes, start, end) as JsonObject;
  }

  field(bytes: Uint8Array, start: number, end: number, name: string): Json | undefined {
    return this.#reader.field(bytes, start, end, name);
  }

  isText(
    bytes: Uint8Array,
    start: number,
    end: number,
    name: string,
    text: string,
    utf8: Uint8Array,
  ): boolean {
    return this.#reader.isText(bytes, start, end, name, text, utf8);
  }

  json(bytes: Uint8Array, start: number, end: number): Buffer {
    if (this.#text.bytes.length > maxCachedBytes) this.#text = new GrowingBytes(firstTextBytes);
    const text = this.#text;
    text.at = 0;
    this.writeJson(text, bytes, start, end);
    return text.bytes.subarray(0, text.at);
  }

  writeJson(to: GrowingBytes, bytes: Uint8Array, start: number, end: number): void {
    if (this.#json.write(to, bytes, start, end)) return;
    // A document that defines shapes of its own.
    to.put(Buffer.from(JSON.stringify(this.decode(bytes, start, end))));
  }
}
