import type { StoreCodec } from './codec.js';
import { maxRecordBytes, toDocument, type JsonObject } from '../value/documents.js';
import { encodeRecord, fixedLength, writeFixedHead, type RecordFields } from './record.js';
import { refuse } from '../value/refusal.js';

/** A document encoded before its job runs in the writer. */
export class EncodedDocument {
  #isTaken = false;
  #data: JsonObject | undefined;

  constructor(
    /** The document, after room for the head of its record. */
    private readonly row: Buffer,
    readonly contentHash: number,
    private readonly codec: StoreCodec,
    data: JsonObject | undefined,
  ) {
    this.#data = data;
    if (this.size <= maxRecordBytes) return;
    throw refuse(
      'RECORD_TOO_LARGE',
      `The record takes ${this.size} bytes; the most is ${maxRecordBytes}. ` +
        'Split it, or keep the large part elsewhere.',
      { limit_bytes: String(maxRecordBytes) },
    );
  }

  /** Size of the document alone. */
  get size(): number {
    return this.row.length - fixedLength;
  }

  get data(): JsonObject {
    return (this.#data ??= this.codec.decode(this.row, fixedLength, this.row.length));
  }

  /** The document as an object; undefined when it would have to be decoded. */
  get decodedData(): JsonObject | undefined {
    return this.#data;
  }

  /** For operations, which accept encoded and plain documents. */
  get encoded(): this {
    return this;
  }

  /** The record with this document. The first one is built in place, without a copy. */
  toRecord(fields: RecordFields): Buffer {
    if (this.#isTaken || fields.expiresAt || fields.key !== '') {
      return encodeRecord(fields, this.row.subarray(fixedLength));
    }
    this.#isTaken = true;
    writeFixedHead(fields, 0, this.row);
    return this.row;
  }
}

/** Encodes a document that is clean and will not be modified. */
export function encodeDocument(
  { codec }: { codec: StoreCodec },
  data: JsonObject,
): EncodedDocument {
  const encoded = write(codec, data, data);
  if (encoded) return encoded;
  const clean = toDocument(data);
  return write(codec, clean, clean)!;
}

/**
 * Checks and encodes a value from outside. A value that the writer finds clean is not copied.
 * `isOwn`: the caller keeps no reference to it.
 */
export function encodeValue(
  { codec }: { codec: StoreCodec },
  value: unknown,
  isOwn = false,
): EncodedDocument {
  if (typeof value === 'object' && value !== null) {
    const encoded = write(codec, value, isOwn ? (value as JsonObject) : undefined);
    if (encoded) return encoded;
  }
  return encodeDocument({ codec }, toDocument(value));
}

function write(
  codec: StoreCodec,
  value: object,
  data: JsonObject | undefined,
): EncodedDocument | undefined {
  const { writer } = codec;
  const row = writer.write(value, fixedLength);
  return row && new EncodedDocument(row, writer.contentHash, codec, data);
}
