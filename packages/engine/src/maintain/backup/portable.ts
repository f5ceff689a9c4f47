import { checkCollectionName, maxDepth, refuse } from '../../value/documents.js';
import { systemCollection, type CollectionInfo } from '../../core/core.js';
import { compileIndex } from '../../format/entries.js';
import type { BackupHeader, BackupTrailer } from './frames.js';
import { type ChangeOp, type Commit, encodeRecord, RecordImage } from '../../format/record.js';
import type { Codec } from '../../format/codec.js';
import { contentHash } from '../../format/document-writer.js';
import type { Hash64 } from '../../value/bytes.js';
import { idLength, readId, readUint48, writeId } from '../../format/keys.js';

/**
 * Checksums detect damage, not malice: an attacker can compute them for any content. So the content
 * of a backup is checked here before it is used. Each function returns the problem.
 */

const maxSeq = 2 ** 48 - 1;
const maxEpoch = 2 ** 32 - 1;
const hexHash = /^[0-9a-f]{16}$/;
const lineage = /^[0-9A-Za-z_-]{1,64}$/;

const isCount = (value: unknown, max: number): boolean =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max;

export function headerProblem(header: BackupHeader): string | undefined {
  const { seq, sinceSeq, epoch, lineageId, createdAt, chainHash } = header;
  if (!isCount(seq, maxSeq)) return 'its header has no valid seq';
  if (!isCount(sinceSeq, seq)) return 'its header has no valid since_seq';
  if (!isCount(epoch, maxEpoch)) return 'its header has no valid epoch';
  if (!lineage.test(lineageId)) return 'its header has no valid lineage_id';
  if (Number.isNaN(createdAt.getTime())) return 'its header has no valid created_at';
  const { high, low } = chainHash;
  if (Number.isNaN(high) || Number.isNaN(low)) return 'its header has no valid chain_hash';
  return undefined;
}

export function trailerProblem(trailer: BackupTrailer | null): string | undefined {
  const { bytes, records, sha256 } = trailer ?? {};
  const isValid = [bytes, records].every((count) => isCount(count, Number.MAX_SAFE_INTEGER));
  return isValid && typeof sha256 === 'string' ? undefined : 'its trailer is not one';
}

export function catalogProblem(catalog: unknown): string | undefined {
  if (typeof catalog !== 'object' || catalog === null) return 'its catalog is not an object';
  const { collections, indexes, only, since_chain: chain } = catalog as Record<string, unknown>;
  if (!Array.isArray(collections) || !Array.isArray(indexes)) return 'its catalog lacks a list';
  if (chain !== null && !(typeof chain === 'string' && hexHash.test(chain))) {
    return 'its catalog has no valid since_chain';
  }
  const names = new Set<unknown>();
  for (const each of collections as unknown[]) {
    const { number, name } = (each ?? {}) as { number?: unknown; name?: unknown };
    if (!isCount(number, maxEpoch)) return 'its catalog has a collection without a number';
    if (names.has(name)) return `its catalog has the collection "${String(name)}" twice`;
    names.add(name);
    const problem = problemOf(() => name === systemCollection || checkCollectionName(name));
    if (problem !== undefined) return `its catalog: ${problem}`;
  }
  for (const index of indexes as unknown[]) {
    const { collection, fields } = (index ?? {}) as { collection?: unknown; fields?: unknown };
    if (!names.has(collection)) return 'its catalog has an index of no collection';
    const problem = problemOf(() => compileIndex(index as Parameters<typeof compileIndex>[0]));
    if (!Array.isArray(fields) || problem !== undefined) {
      return `its catalog has an index that cannot be used: ${problem ?? 'it has no fields'}`;
    }
  }
  const { commit } = catalog as { commit?: Record<string, unknown> | null };
  if (commit !== undefined) {
    const { seq, epoch, chain: hash } = commit ?? {};
    const isHash = typeof hash === 'string' && hexHash.test(hash);
    if (!isCount(seq, maxSeq) || !isCount(epoch, maxEpoch) || !isHash) {
      return 'its catalog has no valid commit';
    }
  }
  const isList = Array.isArray(only) && only.every((name) => typeof name === 'string');
  return only === null || isList ? undefined : 'its catalog has no valid list of collections';
}

/** A document must satisfy the rules for writes. */
function documentProblem(data: unknown): string | undefined {
  if (typeof data !== 'object' || data === null || Array.isArray(data)) return 'is not an object';
  return nestedProblem(data, 1);
}

function nestedProblem(value: object, depth: number): string | undefined {
  if (depth > maxDepth) return `is nested deeper than ${maxDepth} levels`;
  if (Object.hasOwn(value, '__proto__')) return 'has a field named "__proto__"';
  for (const part of Object.values(value) as unknown[]) {
    if (typeof part !== 'object' || part === null) continue;
    const problem = nestedProblem(part, depth + 1);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function problemOf(check: () => unknown): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/**
 * Records and commits as a backup carries them. They lie as in the file (see record.ts and
 * changes.ts), but the document is JSON, which needs no shapes to be read:
 *
 *   record   id 16 | length u32 | record
 *   commit   seq u48 | at u48 | epoch u32 | chain 8 | count u32 | changes
 *   change   op u8 | collection u32 | id 16 | length of the record after it u32, 0 for none | record
 *   batch    lsn u48 | at u48 | checksum u32 | length of the commits u32 | length of the rows u32
 *            | commits | rows
 */
const jsonCodec: Codec = {
  decode: (bytes, start, end) =>
    JSON.parse(
      Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString(),
    ) as never,
  json: (bytes, start, end) => Buffer.from(bytes.subarray(start, end)),
  writeJson: (to, bytes, start, end) => to.put(bytes.subarray(start, end)),
};

const ops: readonly ChangeOp[] = ['insert', 'update', 'delete', 'expire'];
const recordHead = idLength + 4;
const commitHead = 6 + 6 + 4 + 8 + 4;
const changeHead = 1 + 4 + idLength + 4;
const batchHead = 6 + 6 + 4 + 4 + 4;
const removedLength = 0xffffffff;

/** The document as JSON. Refuses CORRUPT when its hash does not match. */
export function checkedJson(image: RecordImage, collection: CollectionInfo): string {
  if (contentHash(image.data) === image.contentHash) return JSON.stringify(image.data);
  throw refuse(
    'CORRUPT',
    `The record ${image.id} of "${collection.name}" is damaged; run "ctl db verify".`,
  );
}

/** The record with its document as JSON. */
export function toPortable(image: RecordImage, collection: CollectionInfo): Buffer {
  const json = checkedJson(image, collection);
  const { rev, seq, createdAt, updatedAt, expiresAt, key, contentHash } = image;
  const fields = { rev, seq, createdAt, updatedAt, expiresAt, key, contentHash };
  return encodeRecord(fields, Buffer.from(json));
}

export function encodeRecordRow(id: string, record: Buffer): Buffer {
  const head = Buffer.allocUnsafe(recordHead);
  writeId(id, head, 0);
  head.writeUInt32BE(record.length, idLength);
  return Buffer.concat([head, record]);
}

/** A change as a backup stores it. */
export interface PortableChange {
  op: ChangeOp;
  collection: number;
  id: string;
  after: RecordImage | undefined;
}

/** A batch of the log as a backup stores it. */
export interface PortableBatch {
  /** Its LSN. */
  seq: number;
  at: number;
  /** Checksum in the log. */
  checksum: number;
  commits: PortableCommit[];
  /** Rows that it wrote; without a value, removed. */
  rows: WrittenRow[];
}

interface WrittenRow {
  key: Buffer;
  value: Buffer | undefined;
}

export interface PortableCommit {
  seq: number;
  at: number;
  epoch: number;
  chain: Hash64;
  changes: PortableChange[];
}

export function encodeCommitRow(
  { seq, at, epoch, chain }: Omit<Commit, 'changes'>,
  changes: readonly { op: ChangeOp; collection: number; id: string; record: Buffer | undefined }[],
): Buffer {
  const head = Buffer.allocUnsafe(commitHead);
  head.writeUIntBE(seq, 0, 6);
  head.writeUIntBE(at, 6, 6);
  head.writeUInt32BE(epoch, 12);
  head.writeUInt32BE(chain.high, 16);
  head.writeUInt32BE(chain.low, 20);
  head.writeUInt32BE(changes.length, 24);
  const parts: Buffer[] = [head];
  for (const { op, collection, id, record } of changes) {
    const each = Buffer.allocUnsafe(changeHead);
    each[0] = ops.indexOf(op);
    each.writeUInt32BE(collection, 1);
    writeId(id, each, 5);
    each.writeUInt32BE(record?.length ?? 0, 5 + idLength);
    parts.push(each);
    if (record) parts.push(record);
  }
  return Buffer.concat(parts);
}

/** The records of a frame; its first four bytes name the collection. */
export function* decodeRecordRows(payload: Buffer): Iterable<RecordImage> {
  for (let at = 4; at < payload.length;) {
    const id = readId(payload, at);
    const start = at + recordHead;
    at = start + payload.readUInt32BE(at + idLength);
    yield imageOf(id, payload, start, at);
  }
}

export function* decodeCommitRows(payload: Buffer): Iterable<PortableCommit> {
  for (let at = 0; at < payload.length;) {
    const commit: PortableCommit = {
      seq: readUint48(payload, at),
      at: readUint48(payload, at + 6),
      epoch: payload.readUInt32BE(at + 12),
      chain: { high: payload.readUInt32BE(at + 16), low: payload.readUInt32BE(at + 20) },
      changes: [],
    };
    const count = payload.readUInt32BE(at + 24);
    at += commitHead;
    for (let i = 0; i < count; i++) {
      const op = ops[payload[at]!];
      if (!op) throw new RangeError(`commit ${commit.seq} has an unknown kind of change`);
      const collection = payload.readUInt32BE(at + 1);
      const id = readId(payload, at + 5);
      const start = at + changeHead;
      at = start + payload.readUInt32BE(at + 5 + idLength);
      const after = at === start ? undefined : imageOf(id, payload, start, at);
      commit.changes.push({ op, collection, id, after });
    }
    yield commit;
  }
}

function imageOf(id: string, payload: Buffer, start: number, end: number): RecordImage {
  if (end > payload.length) throw new RangeError(`the record ${id} is cut off`);
  const image = new RecordImage(id, payload.subarray(start, end), end - start, jsonCodec);
  const problem = imageProblem(image);
  if (problem !== undefined) throw new RangeError(`the record ${id} ${problem}`);
  return image;
}

function imageProblem(image: RecordImage): string | undefined {
  try {
    const problem = documentProblem(image.data);
    return problem ?? (contentHash(image.data) === image.contentHash ? undefined : 'is damaged');
  } catch (error) {
    if (error instanceof SyntaxError) return 'is damaged';
    throw error;
  }
}

export function encodeBatchRow(
  { seq, at, checksum }: Omit<PortableBatch, 'commits' | 'rows'>,
  commits: readonly Buffer[],
  rows: readonly Buffer[],
): Buffer {
  const lengthOf = (parts: readonly Buffer[]) => parts.reduce((sum, { length }) => sum + length, 0);
  const head = Buffer.allocUnsafe(batchHead);
  head.writeUIntBE(seq, 0, 6);
  head.writeUIntBE(at, 6, 6);
  head.writeUInt32BE(checksum, 12);
  head.writeUInt32BE(lengthOf(commits), 16);
  head.writeUInt32BE(lengthOf(rows), 20);
  return Buffer.concat([head, ...commits, ...rows]);
}

export function* decodeBatchRows(payload: Buffer): Iterable<PortableBatch> {
  for (let at = 0; at < payload.length;) {
    const start = at + batchHead;
    const middle = start + payload.readUInt32BE(at + 16);
    const end = middle + payload.readUInt32BE(at + 20);
    if (end > payload.length) throw new RangeError('a batch is cut off');
    yield {
      seq: readUint48(payload, at),
      at: readUint48(payload, at + 6),
      checksum: payload.readUInt32BE(at + 12),
      commits: [...decodeCommitRows(payload.subarray(start, middle))],
      rows: decodeRows(payload.subarray(middle, end)),
    };
    at = end;
  }
}

/**
 * A raw row in a frame: `length of the key u32 | length of the value u32, all ones if removed |
 * both`.
 */
export function encodeRow({ key, value }: WrittenRow): Buffer {
  const bytes = Buffer.allocUnsafe(8 + key.length + (value?.length ?? 0));
  bytes.writeUInt32BE(key.length, 0);
  bytes.writeUInt32BE(value?.length ?? removedLength, 4);
  bytes.set(key, 8);
  if (value) bytes.set(value, 8 + key.length);
  return bytes;
}

export function decodeRows(bytes: Buffer): WrittenRow[] {
  const rows: WrittenRow[] = [];
  for (let at = 0; at < bytes.length;) {
    const keyEnd = at + 8 + bytes.readUInt32BE(at);
    const length = bytes.readUInt32BE(at + 4);
    const end = length === removedLength ? keyEnd : keyEnd + length;
    if (end > bytes.length) throw new RangeError('a row is cut off');
    const value = length === removedLength ? undefined : bytes.subarray(keyEnd, end);
    rows.push({ key: bytes.subarray(at + 8, keyEnd), value });
    at = end;
  }
  return rows;
}
