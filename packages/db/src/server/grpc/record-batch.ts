import type { JsonObject } from '@millrace/engine/value/documents';
import { GrowingBytes } from '@millrace/engine/value/growing-bytes';
import type { RecordImage } from '@millrace/engine/format/record';
import type { RecordWriter } from '../service/found-records.js';
import { closeLength, lengthBytes } from './lengths.js';
import { writeRecord } from './record-writer.js';

const firstBytes = 64 * 1024;
const maxInitialBytes = 1024 * 1024;
const headBytes = 5;
// Field number of `records` in FindResponse, and the wire type of a nested message.
const tag = 10;

/** Encoded records of one message, with space reserved for the gRPC prefix. */
export class RecordBatch {
  readonly #to: GrowingBytes;

  constructor(to: GrowingBytes) {
    this.#to = to;
  }

  /** The message with its gRPC prefix; `rest` is its other fields. Call it once only. */
  frame(rest: Uint8Array): Buffer {
    const to = this.#to;
    to.put(rest);
    to.bytes[0] = 0;
    to.view.setUint32(1, to.at - headBytes);
    // Copies small content, so that a large buffer is not retained until it is sent.
    const isWasteful = to.at * 4 < to.bytes.length;
    const frame = to.bytes.subarray(0, to.at);
    return isWasteful ? Buffer.from(frame) : frame;
  }
}

/** Encodes found records one after another as the `records` of a FindResponse. */
export class RecordBatchWriter implements RecordWriter {
  #to: GrowingBytes | undefined;
  #nextBytes = firstBytes;

  add(image: RecordImage, parts: JsonObject | undefined, commit: number): void {
    const to = (this.#to ??= emptyPile(this.#nextBytes));
    to.reserve(1 + lengthBytes);
    to.bytes[to.at++] = tag;
    const start = (to.at += lengthBytes);
    writeRecord(to, image, parts, commit);
    closeLength(to, start);
  }

  take(): RecordBatch {
    const taken = this.#to ?? emptyPile(headBytes);
    this.#to = undefined;
    // The next batch is probably of similar size.
    this.#nextBytes = Math.min(taken.at + headBytes, maxInitialBytes);
    return new RecordBatch(taken);
  }
}

function emptyPile(bytes: number): GrowingBytes {
  const to = new GrowingBytes(bytes);
  to.at = headBytes;
  return to;
}
