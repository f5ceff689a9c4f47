import type { JsonObject } from '../../engine/documents.js';
import { GrowingBytes } from '../../engine/growing-bytes.js';
import type { RecordImage } from '../../engine/record.js';
import type { RecordWriter } from '../service/found-records.js';
import { closeLength, lengthRoom } from './lengths.js';
import { writeRecord } from './record-writer.js';

const firstBytes = 64 * 1024;
const mostFirstBytes = 1024 * 1024;
const headBytes = 5;
// `records` of a FindResponse, and how a part of a message lies in the bytes.
const tag = 10;

/** The records of a message as bytes, with room for its head before them. */
export class PiledRecords {
  readonly #to: GrowingBytes;

  constructor(to: GrowingBytes) {
    this.#to = to;
  }

  /** The message with the head that it has on a stream; `rest` are its other fields. Once only. */
  frame(rest: Uint8Array): Buffer {
    const to = this.#to;
    to.put(rest);
    to.bytes[0] = 0;
    to.view.setUint32(1, to.at - headBytes);
    // Much room for little would be held until it is sent.
    const isWasteful = to.at * 4 < to.bytes.length;
    const frame = to.bytes.subarray(0, to.at);
    return isWasteful ? Buffer.from(frame) : frame;
  }
}

/** Writes found records side by side, as they stand in a FindResponse. */
export class RecordPile implements RecordWriter {
  #to: GrowingBytes | undefined;
  #nextBytes = firstBytes;

  add(image: RecordImage, parts: JsonObject | undefined, commit: number): void {
    const to = (this.#to ??= emptyPile(this.#nextBytes));
    to.reserve(1 + lengthRoom);
    to.bytes[to.at++] = tag;
    const start = (to.at += lengthRoom);
    writeRecord(to, image, parts, commit);
    closeLength(to, start);
  }

  take(): PiledRecords {
    const taken = this.#to ?? emptyPile(headBytes);
    this.#to = undefined;
    // The next batch will be much like this one.
    this.#nextBytes = Math.min(taken.at + headBytes, mostFirstBytes);
    return new PiledRecords(taken);
  }
}

function emptyPile(bytes: number): GrowingBytes {
  const to = new GrowingBytes(bytes);
  to.at = headBytes;
  return to;
}
