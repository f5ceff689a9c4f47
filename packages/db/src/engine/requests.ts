import type { Core } from './core.js';
import { expiryKey, expiryKinds, idLength, readId, readUint48, writeId } from './storage/keys.js';
import { hashText } from './hash.js';
import { RecordImage } from './record.js';
import { refuse } from './refusal.js';

/** How long a repeated request is answered with what it did the first time. */
export const requestMemoryMs = 10 * 60_000;
const maxRequestIdLength = 128;

/** What a write did, as its repetition must hear it again. */
export interface Outcome {
  seq: number;
  created: boolean;
  /** The record after the write, or the one that a delete removed. */
  record?: RecordImage | undefined;
}

/**
 * Runs a write once per request id. The answer is stored in the same commit as the write, so a
 * client that lost the answer, even to a crash, can repeat the request and nothing happens twice.
 */
export function once(
  core: Core,
  requestId: string | undefined,
  fingerprint: string,
  run: () => Outcome,
): Outcome {
  if (requestId === undefined || requestId === '') return run();
  checkRequestId(requestId);
  const now = core.clock.now();
  const row = Buffer.from(`r:${requestId}`);
  const print = hashText(fingerprint);
  const stored = core.writer.get('requests', row);
  if (stored && readUint48(stored, 0) > now) {
    if (stored.readUInt32BE(6) !== print.high || stored.readUInt32BE(10) !== print.low) {
      throw requestIdReused(requestId);
    }
    return decodeOutcome(core, stored);
  }
  // The sweeper must not take this answer for the one that is too old.
  if (stored) {
    core.writer.remove('expiry', expiryKey(readUint48(stored, 0), expiryKinds.request, row));
  }
  const outcome = run();
  const head = Buffer.alloc(14);
  head.writeUIntBE(now + requestMemoryMs, 0, 6);
  head.writeUInt32BE(print.high, 6);
  head.writeUInt32BE(print.low, 10);
  remember(core, row, now, Buffer.concat([head, encodeOutcome(outcome)]));
  return outcome;
}

export function checkRequestId(requestId: string): void {
  if (requestId.length <= maxRequestIdLength) return;
  throw refuse('BAD_REQUEST', `request_id takes at most ${maxRequestIdLength} characters.`);
}

export function requestIdReused(requestId: string) {
  return refuse(
    'REQUEST_ID_REUSED',
    `The request_id "${requestId}" was used for another request; make a new one for each.`,
    { request_id: requestId },
  );
}

/** Keeps a row of `requests` for ten minutes. */
export function remember(core: Core, row: Buffer, now: number, value: Buffer): void {
  core.writer.put('requests', row, value);
  const expiry = expiryKey(now + requestMemoryMs, expiryKinds.request, row);
  core.writer.put('expiry', expiry, Buffer.alloc(0));
}

const outcomeStart = 14;

function encodeOutcome({ seq, created, record }: Outcome): Buffer {
  const head = Buffer.alloc(7 + (record ? idLength : 0));
  head.writeUIntBE(seq, 0, 6);
  head[6] = (created ? 1 : 0) | (record ? 2 : 0);
  if (!record) return head;
  writeId(record.id, head, 7);
  return Buffer.concat([head, record.bytes.subarray(0, record.end)]);
}

function decodeOutcome(core: Core, stored: Buffer): Outcome {
  const flags = stored[outcomeStart + 6]!;
  const outcome = { seq: readUint48(stored, outcomeStart), created: (flags & 1) !== 0 };
  if (!(flags & 2)) return outcome;
  const bytes = stored.subarray(outcomeStart + 7 + idLength);
  const id = readId(stored, outcomeStart + 7);
  return { ...outcome, record: new RecordImage(id, bytes, bytes.length, core.codec) };
}
