import type { StoredRecord } from '@millrace/engine/format/stored-record';
import { textAt } from './text.js';

const more = 0x80;
const [varint, delimited] = [0, 2];
// Longer varints are left to the library; these fit a number.
const maxVarintBytes = 7;
const maxNanos = 999_999_999;

/**
 * Decodes a Record message with JSON data to what a client returns, without a message in between:
 * 3.7 us of CPU for each record instead of 11.9. `data` is undefined if there is none.
 * Returns undefined when the library must decode the record.
 */
export function readRecord(
  length: number,
  bytes: Buffer,
  start: number,
): StoredRecord<unknown> | undefined {
  return new RecordReader(bytes, start, start + length).read();
}

class RecordReader {
  /** Whether the library must decode the record. */
  #isUnusual = false;

  constructor(
    private readonly bytes: Buffer,
    private at: number,
    private readonly end: number,
  ) {}

  read(): StoredRecord<unknown> | undefined {
    const { bytes, end } = this;
    let [id, key, data]: [string, string, unknown] = ['', '', undefined];
    let [rev, seq, createdAt, updatedAt, expiresAt] = [0, 0, NaN, NaN, NaN];
    while (this.at < end) {
      const tag = bytes[this.at++]!;
      const number = this.#number(end);
      if (tag === tagOf(3, varint)) rev = number;
      else if (tag === tagOf(8, varint)) seq = number;
      else {
        const { at: start } = this;
        const stop = start + number;
        if (stop > end || this.#isUnusual) return undefined;
        if (tag === tagOf(1, delimited)) id = this.#text(stop);
        else if (tag === tagOf(2, delimited)) key = this.#text(stop);
        else if (tag === tagOf(5, delimited)) data = jsonOf(bytes, start, stop);
        else if (tag === tagOf(6, delimited)) createdAt = this.#time(stop, createdAt);
        else if (tag === tagOf(7, delimited)) updatedAt = this.#time(stop, updatedAt);
        else if (tag === tagOf(9, delimited)) expiresAt = this.#time(stop, expiresAt);
        else return undefined;
        this.at = stop;
      }
      if (this.#isUnusual) return undefined;
    }
    const record: StoredRecord<unknown> = {
      id,
      key,
      rev,
      data,
      createdAt: new Date(createdAt || 0),
      updatedAt: new Date(updatedAt || 0),
      seq,
    };
    if (!Number.isNaN(expiresAt)) record.expiresAt = new Date(expiresAt);
    return record;
  }

  #number(end: number): number {
    let [value, factor] = [0, 1];
    for (let count = 0; count < maxVarintBytes && this.at < end; count++) {
      const byte = this.bytes[this.at++]!;
      if (byte < more) return value + byte * factor;
      value += (byte - more) * factor;
      factor *= more;
    }
    this.#isUnusual = true;
    return 0;
  }

  #text(end: number): string {
    const text = textAt(this.bytes, this.at, end);
    if (text === undefined) this.#isUnusual = true;
    return text ?? '';
  }

  /** A Timestamp in milliseconds. A second one would have to be merged with the one before. */
  #time(end: number, before: number): number {
    if (!Number.isNaN(before)) this.#isUnusual = true;
    let [seconds, nanos] = [0, 0];
    while (this.at < end) {
      const tag = this.bytes[this.at++]!;
      const number = this.#number(end);
      if (tag === tagOf(1, varint)) seconds = number;
      else if (tag === tagOf(2, varint) && number <= maxNanos) nanos = number;
      else this.#isUnusual = true;
    }
    return seconds * 1_000 + Math.round(nanos / 1e6);
  }
}

function jsonOf(bytes: Buffer, start: number, end: number): unknown {
  return start === end ? undefined : JSON.parse(bytes.toString('utf8', start, end));
}

function tagOf(number: number, wire: number): number {
  return number * 8 + wire;
}
