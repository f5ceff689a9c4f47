import type { Codec } from './codec.js';
import { Hasher, hashText, type Hash64 } from '../value/hash.js';
import { RecordImage } from './record.js';
import { decodeResults, type RequestResult } from './request-results.js';
import { idLength, readId, readUint48, writeId } from './keys.js';

export type ChangeOp = 'insert' | 'update' | 'delete' | 'expire';

/** What a commit did to one record. */
export interface Change {
  op: ChangeOp;
  collection: number;
  id: string;
  /** Absent after a delete or an expiry. */
  after?: RecordImage | undefined;
  /** Absent before an insert. */
  before?: RecordImage | undefined;
}

/** One commit as the log keeps it. */
export interface Commit {
  seq: number;
  /** Milliseconds since the epoch. */
  at: number;
  epoch: number;
  /** Chain hash over this commit and all before it. */
  chain: Hash64;
  changes: Change[];
  /** Results of the requests that this commit contains. */
  results?: readonly RequestResult[];
}

/** An encoded commit, and the offsets of its record images. */
export interface CommitRow {
  seq: number;
  bytes: Buffer;
  /** In pairs: an image as it is stored in `records`, and its offset in `bytes`. */
  images: readonly (Buffer | number)[];
}

const ops: readonly ChangeOp[] = ['insert', 'update', 'delete', 'expire'];
const opNumbers: Readonly<Record<ChangeOp, number>> = {
  insert: 0,
  update: 1,
  delete: 2,
  expire: 3,
};
const headLength = 6 + 4 + 8 + 4;
const changeLength = 1 + 4 + idLength + 4 + 4;

/**
 * A commit in the log:
 *
 *   at u48 | epoch u32 | chain 8 | count u32
 *   then per change: op u8 | collection u32 | id 16 | after length u32 | before length u32 | both
 *   then the results of its requests (see request-results.ts)
 */
export function encodeCommit(commit: Commit): CommitRow {
  const images: (Buffer | number)[] = [];
  let length = headLength;
  for (const { after, before } of commit.changes) {
    length += changeLength + (after?.end ?? 0) + (before?.end ?? 0);
  }
  const bytes = Buffer.allocUnsafe(length);
  bytes.writeUIntBE(commit.at, 0, 6);
  bytes.writeUInt32BE(commit.epoch, 6);
  bytes.writeUInt32BE(commit.chain.high, 10);
  bytes.writeUInt32BE(commit.chain.low, 14);
  bytes.writeUInt32BE(commit.changes.length, 18);
  let at = headLength;
  for (const { op, collection, id, after, before } of commit.changes) {
    bytes[at] = opNumbers[op];
    bytes.writeUInt32BE(collection, at + 1);
    writeId(id, bytes, at + 5);
    bytes.writeUInt32BE(after?.end ?? 0, at + 21);
    bytes.writeUInt32BE(before?.end ?? 0, at + 25);
    at += changeLength;
    if (after) {
      if (after.bytes.length === after.end) images.push(after.bytes as Buffer, at);
      at = writeImage(after, bytes, at);
    }
    if (before) at = writeImage(before, bytes, at);
  }
  return { seq: commit.seq, bytes, images };
}

function writeImage(image: RecordImage, target: Buffer, at: number): number {
  const { bytes, end } = image;
  target.set(bytes.length === end ? bytes : bytes.subarray(0, end), at);
  return at + end;
}

export function decodeCommit(seq: number, bytes: Buffer, codec: Codec): Commit {
  const commit: Commit = {
    seq,
    at: readUint48(bytes, 0),
    epoch: bytes.readUInt32BE(6),
    chain: commitChain(bytes),
    changes: [],
  };
  const count = bytes.readUInt32BE(18);
  let at = headLength;
  for (let i = 0; i < count; i++) {
    const op = ops[bytes[at]!];
    if (op === undefined) throw new RangeError(`Commit ${seq} holds an unknown kind of change`);
    const id = readId(bytes, at + 5);
    const collection = bytes.readUInt32BE(at + 1);
    const afterEnd = at + changeLength + bytes.readUInt32BE(at + 21);
    const beforeEnd = afterEnd + bytes.readUInt32BE(at + 25);
    const image = (from: number, to: number) =>
      from === to ? undefined : new RecordImage(id, bytes.subarray(from, to), to - from, codec);
    const after = image(at + changeLength, afterEnd);
    commit.changes.push({ op, collection, id, after, before: image(afterEnd, beforeEnd) });
    at = beforeEnd;
  }
  if (at < bytes.length) commit.results = decodeResults(bytes, at);
  return commit;
}

/** The time of an encoded commit. */
export function commitTime(bytes: Uint8Array): number {
  return readUint48(bytes, 0);
}

/** The chain hash after an encoded commit. */
export function commitChain(bytes: Buffer): Hash64 {
  return { high: bytes.readUInt32BE(10), low: bytes.readUInt32BE(14) };
}

/**
 * The chain hash after a commit. It covers the content, not the encoding of this file, so that a
 * follower computes the same value.
 */
export function chainAfter(
  previous: Hash64,
  { seq, epoch, changes }: Pick<Commit, 'seq' | 'epoch'> & { changes: readonly Change[] },
  nameOf: (collection: number) => string,
): Hash64 {
  const chain = new Hasher(previous).number(seq);
  // Two leaders may each start an epoch at this commit, and their hashes must differ.
  if (changes.length === 0) chain.number(epoch);
  let named = -1;
  let name = 0;
  for (const { op, collection, id, after } of changes) {
    // Most commits change only one collection.
    if (collection !== named) name = hashText(nameOf((named = collection))).low;
    chain.number(opNumbers[op]).number(name).text(id);
    if (!after) continue;
    chain.number(after.rev).number(after.createdAt).number(after.updatedAt);
    chain.number(after.expiresAt).number(after.contentHash).text(after.key);
  }
  return chain.result();
}

/**
 * Merges several changes of one record in one commit into one change, from its state before the
 * commit to its state after it.
 */
export function coalesce(changes: Change[]): Change[] {
  // A record can be inserted twice only with a delete in between.
  if (changes.length < 2 || changes.every(({ op }) => op === 'insert')) return changes;
  const byRecord = new Map<string, Change>();
  for (const change of changes) {
    const name = `${change.collection}/${change.id}`;
    const earlier = byRecord.get(name);
    if (!earlier) {
      byRecord.set(name, change);
      continue;
    }
    // Moved to the end: the order among records is the order of their last change.
    byRecord.delete(name);
    const { before } = earlier;
    const { after } = change;
    if (!before && !after) continue;
    const op = !before ? 'insert' : after ? 'update' : change.op;
    byRecord.set(name, { ...change, op, before, after });
  }
  return [...byRecord.values()];
}
