import { toDocument, type Json, type JsonObject } from '../value/documents.js';
import { GrowingBytes } from '../value/growing-bytes.js';
import { DocumentReader } from './document-reader.js';
import { DocumentWriter } from './document-writer.js';
import { JsonWriter } from './json-writer.js';
import { Shapes } from './shapes.js';

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
export interface Codec {
  decode(bytes: Uint8Array, start: number, end: number): JsonObject;
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
  json(bytes: Uint8Array, start: number, end: number): Buffer;
  /** Writes that text. */
  writeJson(to: GrowingBytes, bytes: Uint8Array, start: number, end: number): void;
}

/** Where the shapes of a database are stored. */
export interface ShapeStore {
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
