import type { JsonObject } from '../../engine/documents.js';
import { GrowingBytes } from '../../engine/growing-bytes.js';
import type { RecordImage } from '../../engine/record.js';
import { jsonBytes, type ShownRecord } from '../service/records.js';
import { closeLength, lengthRoom, putNumber } from './lengths.js';

// The fields of a record and of a time, each with how it lies in the bytes.
const [id, key, rev, json, createdAt, updatedAt, seq, expiresAt] = [10, 18, 24, 42, 50, 58, 64, 74];
const [seconds, nanos] = [8, 16];
const idLength = 26;
// The id, a number and the head of the document; behind it three times and a number.
const roomBefore = 64;
const roomBehind = 64;
const firstBytes = 64 * 1024;
const mostKeptBytes = 1024 * 1024;

let alone = new GrowingBytes(firstBytes);

/** A record by itself. Valid until the next one is asked for. */
export function recordBytes({ image, parts, commit }: ShownRecord): Uint8Array {
  if (alone.bytes.length > mostKeptBytes) alone = new GrowingBytes(firstBytes);
  alone.at = 0;
  writeRecord(alone, image, parts, commit);
  return alone.bytes.subarray(0, alone.at);
}

/**
 * Writes a record from its stored bytes, as the library writes the message made of them. `parts`:
 * what to show of the document; undefined: all of it.
 */
export function writeRecord(
  to: GrowingBytes,
  image: RecordImage,
  parts: JsonObject | undefined,
  commit: number,
): void {
  to.reserve(roomBefore);
  to.bytes[to.at] = id;
  to.bytes[to.at + 1] = idLength;
  image.writeId(to.bytes, to.at + 2);
  to.at += 2 + idLength;
  if (image.hasKey) writeKey(to, image.key);
  writeNumber(to, rev, image.rev);
  to.bytes[to.at++] = json;
  const start = (to.at += lengthRoom);
  if (parts === undefined) image.writeJson(to);
  else to.put(jsonBytes(parts));
  closeLength(to, start);
  to.reserve(roomBehind);
  writeTime(to, createdAt, image.createdAt);
  writeTime(to, updatedAt, image.updatedAt);
  writeNumber(to, seq, commit);
  const expiry = image.expiresAt;
  if (expiry) writeTime(to, expiresAt, expiry);
}

function writeKey(to: GrowingBytes, text: string): void {
  const length = Buffer.byteLength(text, 'utf8');
  to.reserve(length + 2 * roomBefore);
  to.bytes[to.at++] = key;
  putNumber(to, length);
  to.at += to.bytes.write(text, to.at, 'utf8');
}

function writeNumber(to: GrowingBytes, tag: number, value: number): void {
  if (value === 0) return;
  to.bytes[to.at++] = tag;
  putNumber(to, value);
}

// Records were mostly made when their neighbours were, and not changed since.
const kept = { time: -1, bytes: Buffer.alloc(16), at: 0 };

/** Milliseconds, which the file keeps whole, as a Timestamp. */
function writeTime(to: GrowingBytes, tag: number, time: number): void {
  if (time !== kept.time) keepTime(time);
  const { bytes, at: length } = kept;
  const out = to.bytes;
  let { at } = to;
  out[at++] = tag;
  out[at++] = length;
  for (let i = 0; i < length; i++) out[at++] = bytes[i]!;
  to.at = at;
}

function keepTime(time: number): void {
  const whole = Math.floor(time / 1000);
  kept.time = time;
  kept.at = 0;
  if (whole !== 0) {
    kept.bytes[kept.at++] = seconds;
    putNumber(kept, whole);
  }
  if (time === whole * 1000) return;
  kept.bytes[kept.at++] = nanos;
  putNumber(kept, (time - whole * 1000) * 1_000_000);
}
