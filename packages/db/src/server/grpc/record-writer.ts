import type { ShownRecord } from '../service/records.js';
import { BackwardWriter } from './backward-writer.js';

// The fields of a record and of a time, each with how it lies in the bytes.
const [id, key, rev, json, createdAt, updatedAt, seq, expiresAt] = [10, 18, 24, 42, 50, 58, 64, 74];
const [seconds, nanos] = [8, 16];
const idLength = 26;

const times = new BackwardWriter();

/** Writes a record from its stored bytes, as the library writes the message made of them. */
export function writeRecord(to: BackwardWriter, record: ShownRecord): void {
  const { image } = record;
  const expiry = image.expiresAt;
  if (expiry) writeTime(to, expiresAt, expiry);
  writeNumber(to, seq, record.commit);
  writeTime(to, updatedAt, image.updatedAt);
  writeTime(to, createdAt, image.createdAt);
  to.bytes(record.json);
  to.number(json);
  writeNumber(to, rev, image.rev);
  if (image.key !== '') {
    to.string(image.key);
    to.number(key);
  }
  const { bytes, at } = to.room(idLength);
  image.writeId(bytes, at);
  to.number(idLength);
  to.number(id);
}

function writeNumber(to: BackwardWriter, tag: number, value: number): void {
  if (value === 0) return;
  to.number(value);
  to.number(tag);
}

// Records were mostly made when their neighbours were, and not changed since.
let keptTime = -1;
let keptBytes: Uint8Array = new Uint8Array(0);

/** Milliseconds, which the file keeps whole, as a Timestamp. */
function writeTime(to: BackwardWriter, tag: number, time: number): void {
  if (time !== keptTime) {
    keptTime = time;
    keptBytes = timeBytes(time);
  }
  const { bytes, at } = to.room(keptBytes.length);
  for (let i = 0; i < keptBytes.length; i++) bytes[at + i] = keptBytes[i]!;
  to.number(tag);
}

/** With their length. */
function timeBytes(time: number): Uint8Array {
  const whole = Math.floor(time / 1000);
  writeNumber(times, nanos, (time - whole * 1000) * 1_000_000);
  writeNumber(times, seconds, whole);
  times.number(times.length);
  return times.take();
}
