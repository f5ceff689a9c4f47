import type { JsonObject } from '../../engine/documents.js';
import { GrowingBytes } from '../../engine/growing-bytes.js';
import type { RecordImage } from '../../engine/record.js';
import type { RecordWriter } from '../service/found-records.js';
import { jsonBytes, type ShownRecord } from '../service/records.js';
import { timeText } from './times.js';

const firstBytes = 64 * 1024;
const maxRetainedBytes = 1024 * 1024;
// A character takes at most three bytes, and a pair of surrogates four.
const maxCharacterBytes = 3;

// Several finds may be in progress at once; each holds a buffer until its batch is complete.
const maxSpares = 8;
const spares: GrowingBytes[] = [];

/** The JSON text of a single record. */
export function recordText({ image, parts, commit }: ShownRecord): string {
  const to = emptyBuffer();
  writeRecord(to, image, parts, commit, '', '');
  const text = to.bytes.toString('utf8', 0, to.at);
  giveBack(to);
  return text;
}

/** Text around each record. */
export interface RecordFrame {
  readonly before: string;
  readonly between: string;
  readonly after: string;
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
    const lead = this.#to ? between + before : before;
    writeRecord((this.#to ??= emptyBuffer()), image, parts, commit, lead, after);
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
  lead: string,
  tail: string,
): void {
  const { key, expiresAt } = image;
  const keyText = key === '' ? '""' : JSON.stringify(key);
  putText(to, `${lead}{"id":"${image.id}","key":${keyText},"rev":${image.rev},"data":`);
  if (parts === undefined) image.writeJson(to);
  else to.put(jsonBytes(parts));
  const created = timeText(image.createdAt);
  const updated = timeText(image.updatedAt);
  const expiry = expiresAt ? `,"expires_at":"${timeText(expiresAt)}"` : '';
  putText(
    to,
    `,"created_at":"${created}","updated_at":"${updated}","seq":${commit}${expiry}}${tail}`,
  );
}

function putText(to: GrowingBytes, text: string): void {
  to.reserve(maxCharacterBytes * text.length);
  to.at += to.bytes.write(text, to.at, 'utf8');
}

function emptyBuffer(): GrowingBytes {
  const to = spares.pop() ?? new GrowingBytes(firstBytes);
  to.at = 0;
  return to;
}

function giveBack(to: GrowingBytes): void {
  if (spares.length < maxSpares && to.bytes.length <= maxRetainedBytes) spares.push(to);
}
