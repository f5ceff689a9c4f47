import type { CollectionInfo } from '../../core/catalog.js';
import type { ChangeOp, Commit } from '../../format/changes.js';
import type { Codec } from '../../format/codec.js';
import { contentHash } from '../../format/content-hash.js';
import type { Hash64 } from '../../value/hash.js';
import { encodeRecord, RecordImage } from '../../format/record.js';
import { refuse } from '../../value/refusal.js';
import { documentProblem } from './plausible.js';
import { idLength, readId, readUint48, writeId } from '../../format/keys.js';

/**
 * Records and commits as a backup carries them. They lie as in the file (see record.ts and
 * changes.ts), but the document is JSON, which needs no shapes to be read:
 *
 *   record   id 16 | length u32 | record
 *   commit   seq u48 | at u48 | epoch u32 | chain 8 | count u32 | changes
 *   change   op u8 | collection u32 | id 16 | length of the record after it u32, 0 for none | record
 */
export const jsonCodec: Codec = {
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
  const problem = problemOf(image);
  if (problem !== undefined) throw new RangeError(`the record ${id} ${problem}`);
  return image;
}

function problemOf(image: RecordImage): string | undefined {
  try {
    const problem = documentProblem(image.data);
    return problem ?? (contentHash(image.data) === image.contentHash ? undefined : 'is damaged');
  } catch (error) {
    if (error instanceof SyntaxError) return 'is damaged';
    throw error;
  }
}
