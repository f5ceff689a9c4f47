import type { Change } from '../format/changes.js';
import type { Core } from '../core/core.js';
import { expiryKey, expiryKinds, idLength, readId, readUint48, writeId } from '../format/keys.js';
import { hashText } from '../value/hash.js';
import { RecordImage } from '../format/record.js';
import { refuse } from '../value/refusal.js';
import { encodeResult, type RequestResult } from '../format/request-results.js';

/** How long the result of a request is stored for repetitions. */
export const requestMemoryMs = 10 * 60_000;
const maxRequestIdLength = 128;

/** The result of a write, as a repetition returns it. */
export interface Outcome {
  seq: number;
  created: boolean;
  /** The record after the write, or the one that a delete removed. */
  record?: RecordImage | undefined;
}

/**
 * Runs a write once per request id. The result is stored in the same commit as the write, so a
 * client that lost the answer, even in a crash, can repeat the request safely.
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
  // The sweeper must not remove the new result in place of the expired one.
  if (stored) forgetResult(core, row, stored);
  const outcome = run();
  const head = Buffer.alloc(14);
  head.writeUIntBE(now + requestMemoryMs, 0, 6);
  head.writeUInt32BE(print.high, 6);
  head.writeUInt32BE(print.low, 10);
  const value = Buffer.concat([head, encodeOutcome(outcome)]);
  // Every node encodes records differently, so the image is not replicated.
  const shared = value.subarray(0, outcome.record ? imageStart : value.length);
  storeResult(core, { key: row, value: shared, expiresAt: now + requestMemoryMs }, value);
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

/**
 * Stores the result of a request until it expires, and adds it to the commit of the same job, so
 * that a promoted follower has it too. `row` is the complete value if it contains more than other
 * nodes need.
 */
function storeResult(core: Core, result: RequestResult, row = result.value): void {
  const { key, expiresAt } = result;
  core.writer.put('requests', key, row);
  core.writer.put('expiry', expiryKey(expiresAt, expiryKinds.request, key), Buffer.alloc(0));
  core.writer.extendCommit(encodeResult(result));
}

/** Removes a row of `requests`. Only inside a job. */
export function forgetResult(core: Core, key: Buffer, value: Buffer): void {
  const { expiresAt } = aboutResult(key, value);
  core.writer.remove('requests', key);
  core.writer.remove('expiry', expiryKey(expiresAt, expiryKinds.request, key));
}

/** Stores a row of `requests` for ten minutes. */
export function remember(core: Core, row: Buffer, now: number, value: Buffer): void {
  storeResult(core, { key: row, value, expiresAt: now + requestMemoryMs });
}

/**
 * Stores a result that came with a commit of the leader. False: it refers to a record that is not
 * in the commit. Only inside a job, after the commit.
 */
export function storeLeaderResult(
  core: Core,
  result: RequestResult,
  changes: readonly Change[],
): boolean {
  const { key, value } = result;
  const before = core.writer.get('requests', key);
  if (before) forgetResult(core, key, before);
  const hasRecord = key[0] === writeMark && (value[outcomeStart + 6]! & 2) !== 0;
  if (!hasRecord) {
    storeResult(core, result);
    return true;
  }
  if (value.length !== imageStart) return false;
  const id = readId(value, outcomeStart + 7);
  const change = changes.find((each) => each.id === id);
  const image = change?.after ?? change?.before;
  if (!image) return false;
  storeResult(core, result, Buffer.concat([value, image.bytes.subarray(0, image.end)]));
  return true;
}

/** The commit of a row of `requests`, 0 for none, and when the row expires. */
export function aboutResult(key: Buffer, value: Buffer): { seq: number; expiresAt: number } {
  if (key[0] === transactionMark) {
    const { seq, committedAt } = JSON.parse(value.toString()) as Record<string, number>;
    return { seq: seq!, expiresAt: committedAt! + requestMemoryMs };
  }
  const expiresAt = readUint48(value, 0);
  if (key[0] !== manyMark) return { seq: readUint48(value, outcomeStart), expiresAt };
  const { seq } = JSON.parse(value.toString('utf8', outcomeStart)) as { seq: number };
  return { seq, expiresAt };
}

// Key prefixes of the rows: single writes, changes by filter, transactions.
const [writeMark, manyMark, transactionMark] = Buffer.from('rmt');
const outcomeStart = 14;
const imageStart = outcomeStart + 7 + idLength;

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
