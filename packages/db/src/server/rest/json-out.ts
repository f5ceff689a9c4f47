import type { JsonObject } from '@millrace/engine/value/documents';
import { GrowingBytes } from '@millrace/engine/value/bytes';
import type { RecordImage } from '@millrace/engine/format/record';
import type { RecordWriter } from '../service/call.js';
import { jsonBytes, ShownRecord } from '../service/records.js';
import { timeText, durationText } from './json-in.js';
import { ScalarType, toJson, type DescField, type DescMessage } from '@bufbuild/protobuf';
import { ValueSchema, type Duration, type Timestamp, type Value } from '@bufbuild/protobuf/wkt';
import { dbGrpcOnlyFields } from '@millrace/contract/db';

const firstBytes = 64 * 1024;
const maxRetainedBytes = 1024 * 1024;
const idLength = 26;
// Room for everything before the document or behind it but the key and the text around a record.
const room = 256;

const labels = {
  id: Buffer.from('{"id":"'),
  key: Buffer.from('","key":'),
  noKey: Buffer.from('""'),
  rev: Buffer.from(',"rev":'),
  data: Buffer.from(',"data":'),
  created: Buffer.from(',"created_at":"'),
  updated: Buffer.from('","updated_at":"'),
  seq: Buffer.from('","seq":'),
  expires: Buffer.from(',"expires_at":"'),
  expiresEnd: Buffer.from('"}'),
  end: Buffer.from('}'),
};

// Several finds may be in progress at once; each holds a buffer until its batch is complete.
const maxSpares = 8;
const spares: GrowingBytes[] = [];

/** The JSON text of a single record. */
export function recordText({ image, parts, commit, hit }: ShownRecord): string {
  const to = emptyBuffer();
  writeRecord(to, image, parts, commit);
  const text = to.bytes.toString('utf8', 0, to.at);
  giveBack(to);
  return hit ? `${text.slice(0, -1)},${JSON.stringify(hit).slice(1)}` : text;
}

/** Text around each record. */
export interface RecordFrame {
  readonly before: Buffer;
  readonly between: Buffer;
  readonly after: Buffer;
}

/** Found records as JSON, in UTF-8. */
export class JsonRecords {
  constructor(readonly bytes: Buffer) {}
}

/** Encodes found records one after another. */
export class JsonRecordWriter implements RecordWriter {
  #to: GrowingBytes | undefined;

  constructor(private readonly frame: RecordFrame) {}

  add(image: RecordImage, parts: JsonObject | undefined, commit: number): void {
    const { before, between, after } = this.frame;
    if (this.#to) this.#to.put(between);
    const to = (this.#to ??= emptyBuffer());
    to.put(before);
    writeRecord(to, image, parts, commit);
    to.put(after);
  }

  take(): JsonRecords {
    const to = this.#to;
    if (!to) return new JsonRecords(noBytes);
    this.#to = undefined;
    const bytes = Buffer.from(to.bytes.subarray(0, to.at));
    giveBack(to);
    return new JsonRecords(bytes);
  }
}

const noBytes = Buffer.alloc(0);

/** Writes a record from its stored bytes. `parts`: the projected document; undefined: all of it. */
function writeRecord(
  to: GrowingBytes,
  image: RecordImage,
  parts: JsonObject | undefined,
  commit: number,
): void {
  to.reserve(room);
  putLabel(to, labels.id);
  image.writeId(to.bytes, to.at);
  to.at += idLength;
  putLabel(to, labels.key);
  if (image.hasKey) to.put(jsonBytes(image.key));
  else putLabel(to, labels.noKey);
  to.reserve(room);
  putLabel(to, labels.rev);
  to.digits(image.rev);
  putLabel(to, labels.data);
  if (parts === undefined) image.writeJson(to);
  else to.put(jsonBytes(parts));
  to.reserve(room);
  putLabel(to, labels.created);
  putTime(to, image.createdAt);
  putLabel(to, labels.updated);
  putTime(to, image.updatedAt);
  putLabel(to, labels.seq);
  to.digits(commit);
  const expiry = image.expiresAt;
  if (expiry) {
    putLabel(to, labels.expires);
    putTime(to, expiry);
  }
  putLabel(to, expiry ? labels.expiresEnd : labels.end);
}

/** For a few bytes, for which there is room: cheaper than `put`. */
function putLabel(to: GrowingBytes, label: Buffer): void {
  const out = to.bytes;
  const { at } = to;
  for (let i = 0; i < label.length; i++) out[at + i] = label[i]!;
  to.at = at + label.length;
}

// Adjacent records often have equal times, so the last written time is cached.
let cachedTime = Number.NaN;
let cachedText = Buffer.alloc(0);

function putTime(to: GrowingBytes, time: number): void {
  if (time !== cachedTime) {
    cachedText = Buffer.from(timeText(time), 'latin1');
    cachedTime = time;
  }
  putLabel(to, cachedText);
}

function emptyBuffer(): GrowingBytes {
  const to = spares.pop() ?? new GrowingBytes(firstBytes);
  to.at = 0;
  return to;
}

function giveBack(to: GrowingBytes): void {
  if (spares.length < maxSpares && to.bytes.length <= maxRetainedBytes) spares.push(to);
}

/** The JSON text of a value. */
type Write = (value: unknown) => string;
type Fields = Readonly<Record<string, unknown>>;

/**
 * Writes a message as JSON: snake_case, 64-bit integers as numbers, times as RFC 3339. Scalars and
 * lists are always present; other fields only when set.
 */
export function jsonWriter(desc: DescMessage): Write {
  let write = writers.get(desc.typeName);
  if (!write) {
    // Registered before its fields are read, because message types may be recursive.
    let made: Write | undefined;
    write = (message) => (made ??= writerWithout(desc))(message);
    writers.set(desc.typeName, write);
  }
  return write;
}

const writers = new Map<string, Write>();

/** Like `jsonWriter`, without one field. */
export function writerWithout(desc: DescMessage, left?: DescField): Write {
  const grpcOnly = new Set(dbGrpcOnlyFields[desc.name]);
  const fields = desc.fields
    .filter((field) => field !== left && !grpcOnly.has(field.name))
    .map((field) => ({
      label: `${JSON.stringify(field.name)}:`,
      local: field.localName,
      write: writerOf(field),
    }));
  return (message) => {
    if (message instanceof ShownRecord) return recordText(message);
    let text = '{';
    for (const { label, local, write } of fields) {
      const given = (message as Fields)[local];
      if (given === undefined) continue;
      if (text.length > 1) text += ',';
      text += label + write(given);
    }
    return `${text}}`;
  };
}

function writerOf(field: DescField): Write {
  const one = oneWriter(field);
  if (field.fieldKind !== 'list') return one;
  return (list) => {
    const items = list as readonly unknown[];
    let text = '[';
    for (let i = 0; i < items.length; i++) text += i === 0 ? one(items[i]) : `,${one(items[i])}`;
    return `${text}]`;
  };
}

function oneWriter(field: DescField): Write {
  const { message, enum: enumeration, scalar } = field;
  if (enumeration) {
    return (number) => JSON.stringify(enumeration.value[number as number]?.name ?? number);
  }
  if (message) return messageWriter(message);
  if (scalar === ScalarType.UINT64) return (value) => String(Number(value));
  return JSON.stringify;
}

function messageWriter(desc: DescMessage): Write {
  switch (desc.typeName) {
    case 'google.protobuf.Struct':
      return JSON.stringify;
    case 'google.protobuf.Value':
      return (value) => JSON.stringify(toJson(ValueSchema, value as Value));
    case 'google.protobuf.Timestamp':
      return (value) => {
        const { seconds, nanos } = value as Timestamp;
        return `"${timeText(Number(seconds) * 1000 + nanos / 1e6)}"`;
      };
    case 'google.protobuf.Duration':
      return (value) => `"${durationText(value as Duration)}"`;
    default:
      return jsonWriter(desc);
  }
}
