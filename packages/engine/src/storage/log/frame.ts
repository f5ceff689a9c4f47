import { crc32 } from 'node:zlib';
import type { CommitRow } from '../../format/changes.js';
import { readUint48 } from '../../format/keys.js';
import type { TableName } from '../file/tables.js';
import type { PendingWrites } from '../overlay/pending.js';

/**
 * A frame is one group commit in the log:
 *
 *   length u32 | crc32 u32 | lsn u48 | first seq u48 | commits u32 | epoch u32 | time u48
 *   | rows at u32 | reserved u16
 *   then per commit: length u32, bytes (see changes.ts)
 *   then per row: table and flags u8 | key length u16 | value length u32 | key | value
 *
 * The length is that of the whole frame, padded to 8 bytes. The checksum covers everything after
 * it and is seeded with the salt of the segment, so frames from an earlier use of the file are invalid.
 * A row may refer to bytes of a commit instead of repeating them: its value is then the offset u32.
 */
export const frameHeadLength = 40;
const alignment = 8;
const removed = 0x40;
const reference = 0x80;
const tableMask = 0x3f;
const rowHeadLength = 7;

/** The numbers of the tables in frames. They are part of the format. */
const tableNumbers: Readonly<Record<TableName, number>> = {
  meta: 1,
  records: 2,
  keys: 3,
  index: 4,
  unique: 5,
  expiry: 6,
  requests: 7,
  rows: 8,
};
const tablesByNumber = new Map(
  Object.entries(tableNumbers).map(([name, number]) => [number, name as TableName]),
);

export interface FrameContent {
  lsn: number;
  /** Milliseconds since the epoch. */
  at: number;
  epoch: number;
  commits: readonly CommitRow[];
  writes: PendingWrites;
}

export interface FrameHead {
  length: number;
  lsn: number;
  /** 0: the frame has no commits. */
  firstSeq: number;
  commits: number;
  epoch: number;
  at: number;
}

export interface FrameRow {
  table: TableName;
  key: Buffer;
  /** Absent: the row is removed. */
  value: Buffer | undefined;
}

export function encodeFrame(content: FrameContent): Buffer {
  const { commits, writes } = content;
  const images = new Map<Buffer, number>();
  let at = frameHeadLength;
  for (const { bytes, images: pairs } of commits) {
    for (let i = 0; i < pairs.length; i += 2) {
      images.set(pairs[i] as Buffer, at + 4 + (pairs[i + 1] as number));
    }
    at += 4 + bytes.length;
  }
  const rowsAt = at;
  // Upper bound: a row may have been written twice, or refer to an image.
  const maxLength = at + writes.bytes + writes.count * (rowHeadLength + 4) + alignment;
  const bytes = Buffer.allocUnsafe(maxLength);
  writeCommits(bytes, commits);
  writes.forEach((table, row) => (at = writeRow(bytes, at, table, row, images)));
  const length = Math.ceil(at / alignment) * alignment;
  bytes.fill(0, at, length);
  const frame = bytes.subarray(0, length);
  writeHead(frame, content, rowsAt);
  return frame;
}

function writeHead(frame: Buffer, content: FrameContent, rowsAt: number): void {
  frame.writeUInt32BE(frame.length, 0);
  frame.writeUIntBE(content.lsn, 8, 6);
  frame.writeUIntBE(content.commits[0]?.seq ?? 0, 14, 6);
  frame.writeUInt32BE(content.commits.length, 20);
  frame.writeUInt32BE(content.epoch, 24);
  frame.writeUIntBE(content.at, 28, 6);
  frame.writeUInt32BE(rowsAt, 34);
  frame.writeUInt16BE(0, 38);
}

function writeCommits(frame: Buffer, commits: readonly CommitRow[]): void {
  let at = frameHeadLength;
  for (const { bytes } of commits) {
    frame.writeUInt32BE(bytes.length, at);
    frame.set(bytes, at + 4);
    at += 4 + bytes.length;
  }
}

function writeRow(
  frame: Buffer,
  at: number,
  table: TableName,
  { key, value }: { key: Buffer; value: Buffer | undefined },
  images: ReadonlyMap<Buffer, number>,
): number {
  const image = value && images.get(value);
  const flags = !value ? removed : image !== undefined ? reference : 0;
  frame[at] = tableNumbers[table] | flags;
  frame.writeUInt16BE(key.length, at + 1);
  frame.writeUInt32BE(value?.length ?? 0, at + 3);
  frame.set(key, at + rowHeadLength);
  const end = at + rowHeadLength + key.length;
  if (!value) return end;
  if (image !== undefined) return frame.writeUInt32BE(image, end);
  frame.set(value, end);
  return end + value.length;
}

/** Writes the checksum: the last step before a frame is written. */
export function sealFrame(frame: Buffer, salt: number): void {
  frame.writeUInt32BE(crc32(frame.subarray(8), salt), 4);
}

/** The head of the frame at `at`; undefined when there is no valid one. */
export function readHead(bytes: Buffer, at: number): FrameHead | undefined {
  if (at + frameHeadLength > bytes.length) return undefined;
  const length = bytes.readUInt32BE(at);
  if (length < frameHeadLength || length % alignment !== 0) return undefined;
  return {
    length,
    lsn: readUint48(bytes, at + 8),
    firstSeq: readUint48(bytes, at + 14),
    commits: bytes.readUInt32BE(at + 20),
    epoch: bytes.readUInt32BE(at + 24),
    at: readUint48(bytes, at + 28),
  };
}

/** Whether these bytes, whose length must match the head, are a valid frame of this segment. */
export function isSound(frame: Buffer, salt: number): boolean {
  return crc32(frame.subarray(8), salt) === frame.readUInt32BE(4);
}

/** The rows of a valid frame. Keys and values share its buffer. */
export function* frameRows(frame: Buffer): Iterable<FrameRow> {
  let at = frame.readUInt32BE(34);
  // Anything after the last row is padding.
  while (frame.length - at >= rowHeadLength && frame[at] !== 0) {
    const flags = frame[at]!;
    const table = tablesByNumber.get(flags & tableMask);
    if (!table) throw new RangeError(`frame ${readUint48(frame, 8)} has a row of no known table`);
    const keyEnd = at + rowHeadLength + frame.readUInt16BE(at + 1);
    const length = frame.readUInt32BE(at + 3);
    const key = frame.subarray(at + rowHeadLength, keyEnd);
    if (flags & removed) {
      yield { table, key, value: undefined };
      at = keyEnd;
    } else if (flags & reference) {
      const from = frame.readUInt32BE(keyEnd);
      yield { table, key, value: frame.subarray(from, from + length) };
      at = keyEnd + 4;
    } else {
      yield { table, key, value: frame.subarray(keyEnd, keyEnd + length) };
      at = keyEnd + length;
    }
  }
}

export const frameAlignment = alignment;
