import type { JsonObject } from '@millrace/engine/value/documents';
import { GrowingBytes } from '@millrace/engine/value/growing-bytes';
import type { RecordImage } from '@millrace/engine/format/record';
import { jsonBytes, type ShownRecord } from '../service/records.js';
import { closeLength, lengthBytes, putNumber } from './lengths.js';

// Protobuf tags of the fields of Record and Timestamp.
const [id, key, rev, json, createdAt, updatedAt, seq, expiresAt] = [10, 18, 24, 42, 50, 58, 64, 74];
const [seconds, nanos] = [8, 16];
const idLength = 26;
// Space for the id, a number and the document's prefix, and for the times and number after it.
const roomBefore = 64;
const roomBehind = 64;
const firstBytes = 64 * 1024;
const maxRetainedBytes = 1024 * 1024;

let alone = new GrowingBytes(firstBytes);

/** Encodes a single record. Valid until the next call. */
export function recordBytes({ image, parts, commit }: ShownRecord): Uint8Array {
  if (alone.bytes.length > maxRetainedBytes) alone = new GrowingBytes(firstBytes);
  alone.at = 0;
  writeRecord(alone, image, parts, commit);
  return alone.bytes.subarray(0, alone.at);
}

/**
 * Encodes a record from its stored bytes like the library encodes the message. `parts` is the
 * projected document; undefined means the whole document.
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
  const start = (to.at += lengthBytes);
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

// Adjacent records often have equal times, so the last encoded time is cached.
const cachedTime = { time: -1, bytes: Buffer.alloc(16), at: 0 };

/** Writes milliseconds as a Timestamp. */
function writeTime(to: GrowingBytes, tag: number, time: number): void {
  if (time !== cachedTime.time) cacheTime(time);
  const { bytes, at: length } = cachedTime;
  const out = to.bytes;
  let { at } = to;
  out[at++] = tag;
  out[at++] = length;
  for (let i = 0; i < length; i++) out[at++] = bytes[i]!;
  to.at = at;
}

function cacheTime(time: number): void {
  const whole = Math.floor(time / 1000);
  cachedTime.time = time;
  cachedTime.at = 0;
  if (whole !== 0) {
    cachedTime.bytes[cachedTime.at++] = seconds;
    putNumber(cachedTime, whole);
  }
  if (time === whole * 1000) return;
  cachedTime.bytes[cachedTime.at++] = nanos;
  putNumber(cachedTime, (time - whole * 1000) * 1_000_000);
}
