import { Packr } from 'msgpackr';
import { DocumentPacker, type SharedShapes } from './document-packer.js';
import { DocumentReader } from './document-reader.js';
import type { Json, JsonObject } from '../value/documents.js';
import { FieldReader, type undecided } from './field-reader.js';
import { GrowingBytes } from '../value/growing-bytes.js';
import { JsonWriter } from './json-writer.js';

/**
 * Turns documents into bytes and back: msgpack, with the names of a document's fields kept once
 * per shape instead of once per record. The shapes are part of the database file: a record can be
 * read only with the shapes that were there when it was written, so `save` must have put them on
 * disk in or before the commit that holds the record.
 */
export interface Codec {
  encode(data: JsonObject): Buffer;
  decode(bytes: Uint8Array, start: number, end: number): JsonObject;
  /** One top-level field alone, or `undecided`. `bytes` must be a Buffer. */
  field(
    bytes: Uint8Array,
    start: number,
    end: number,
    name: string,
  ): Json | undefined | typeof undecided;
  /** Whether one top-level field is the text of these bytes, or `undecided`. */
  isText(
    bytes: Uint8Array,
    start: number,
    end: number,
    name: string,
    text: Uint8Array,
  ): boolean | typeof undecided;
  /** The document as JSON text. Valid until the next call: copy what is to stay. */
  json(bytes: Uint8Array, start: number, end: number): Buffer;
  /** Writes that text. */
  writeJson(to: GrowingBytes, bytes: Uint8Array, start: number, end: number): void;
}

/** The codec of a database. */
export interface StoreCodec extends Codec {
  /** Makes the same bytes as `encode`, of most documents. */
  readonly packer: DocumentPacker;
}

export interface ShapeStore {
  load(): Uint8Array | undefined;
  save(shapes: Uint8Array): void;
}

type Shapes = string[][];

const firstTextBytes = 64 * 1024;
const maxCachedBytes = 1024 * 1024;

// Enough for the collections of one database; documents of rarer shapes carry their field names.
const maxShapes = 256;

export function createCodec(store: ShapeStore): StoreCodec {
  const plain = new Packr({ useRecords: false });
  const loadShapes = (): Shapes => {
    const bytes = store.load();
    return bytes ? (plain.unpack(bytes) as Shapes) : [];
  };
  const packr = new Packr({
    // Not `structures: loadShapes()`: shapes given that way are never told to take two bytes.
    getStructures: loadShapes,
    saveStructures: (shapes: unknown) => {
      store.save(plain.pack(Array.from(shapes as Shapes)));
    },
    maxSharedStructures: maxShapes,
    moreTypes: false,
  });
  const shapesOf = () => (packr as unknown as { structures: Shapes & SharedShapes }).structures;
  const documents = new DocumentReader(shapesOf);
  const range = { start: 0, end: 0 };
  const decode = (bytes: Uint8Array, start: number, end: number): Json => {
    const value = documents.read(bytes, start, end);
    if (value !== undefined) return value;
    range.start = start;
    range.end = end;
    return packr.unpack(bytes, range) as Json;
  };
  const reader = new FieldReader(shapesOf, decode);
  const writer = new JsonWriter(shapesOf);
  let jsonText = new GrowingBytes(firstTextBytes);
  const writeJson = (to: GrowingBytes, bytes: Uint8Array, start: number, end: number): void => {
    if (writer.write(to, bytes, start, end)) return;
    to.put(Buffer.from(JSON.stringify(decode(bytes, start, end))));
  };
  return {
    encode: (data) => packr.pack(data),
    packer: new DocumentPacker(shapesOf),
    decode: (bytes, start, end) => decode(bytes, start, end) as JsonObject,
    field: (bytes, start, end, name) => reader.read(bytes, start, end, name),
    isText: (bytes, start, end, name, text) => reader.isText(bytes, start, end, name, text),
    json: (bytes, start, end) => {
      if (jsonText.bytes.length > maxCachedBytes) jsonText = new GrowingBytes(firstTextBytes);
      jsonText.at = 0;
      writeJson(jsonText, bytes, start, end);
      return jsonText.bytes.subarray(0, jsonText.at);
    },
    writeJson,
  };
}
