import { crc32 } from 'node:zlib';
import type { CommitRow } from '../../format/record.js';
import { readUint48 } from '../../format/keys.js';
import type { TableName } from '../file/tables.js';
import type { PendingWrites } from '../overlay/overlay.js';
import type { Hash64 } from '../../value/bytes.js';
import type { LogFile } from '../file/files.js';
import { refuse } from '../../value/documents.js';

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

interface FrameHead {
  length: number;
  lsn: number;
  /** 0: the frame has no commits. */
  firstSeq: number;
  commits: number;
  epoch: number;
  at: number;
}

interface FrameRow {
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

/** The checksum of a valid frame. The salt of its segment makes it differ in another history. */
export function frameChecksum(frame: Buffer): number {
  return frame.readUInt32BE(4);
}

/** The encoded commits of a valid frame. They share its buffer. */
export function* frameCommits(frame: Buffer): Iterable<Buffer> {
  const end = frame.readUInt32BE(34);
  for (let at = frameHeadLength; at < end;) {
    const start = at + 4;
    at = start + frame.readUInt32BE(at);
    yield frame.subarray(start, at);
  }
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

const frameAlignment = alignment;

/**
 * A segment is a file of frames behind a header of one sector:
 *
 *   magic 16 | version u32 | number u48 | salt u32 | first lsn u48 | first seq u48 | time u48
 *   | chain before the first seq 8 | crc32 of all this u32
 */
interface SegmentHeader {
  number: number;
  /** Seeds the checksums of its frames. */
  salt: number;
  firstLsn: number;
  /** The next commit when the segment was started. */
  firstSeq: number;
  createdAt: number;
  /** The chain hash before `firstSeq`. */
  chain: Hash64;
}

export const segmentHeaderLength = 512;
const magic = Buffer.from('MILLRACE LOG 2\n\0', 'latin1');
const version = 2;
const checkedLength = 56;
const namePattern = /^(\d{12})\.log$/;

export function segmentName(number: number): string {
  return `${String(number).padStart(12, '0')}.log`;
}

export function segmentNumber(name: string): number | undefined {
  const found = namePattern.exec(name);
  return found ? Number(found[1]) : undefined;
}

export function encodeSegmentHeader(header: SegmentHeader): Buffer {
  const bytes = Buffer.alloc(segmentHeaderLength);
  bytes.set(magic);
  bytes.writeUInt32BE(version, 16);
  bytes.writeUIntBE(header.number, 20, 6);
  bytes.writeUInt32BE(header.salt, 26);
  bytes.writeUIntBE(header.firstLsn, 30, 6);
  bytes.writeUIntBE(header.firstSeq, 36, 6);
  bytes.writeUIntBE(header.createdAt, 42, 6);
  bytes.writeUInt32BE(header.chain.high, 48);
  bytes.writeUInt32BE(header.chain.low, 52);
  bytes.writeUInt32BE(crc32(bytes.subarray(0, checkedLength)), checkedLength);
  return bytes;
}

/** The header of a segment file; undefined when it is invalid. */
export function readSegmentHeader(file: LogFile): SegmentHeader | undefined {
  const bytes = Buffer.alloc(segmentHeaderLength);
  if (file.read(bytes, 0) < segmentHeaderLength) return undefined;
  const isKnown =
    bytes.subarray(0, magic.length).equals(magic) && bytes.readUInt32BE(16) === version;
  if (!isKnown) return undefined;
  if (crc32(bytes.subarray(0, checkedLength)) !== bytes.readUInt32BE(checkedLength)) {
    return undefined;
  }
  return {
    number: readUint48(bytes, 20),
    salt: bytes.readUInt32BE(26),
    firstLsn: readUint48(bytes, 30),
    firstSeq: readUint48(bytes, 36),
    createdAt: readUint48(bytes, 42),
    chain: { high: bytes.readUInt32BE(48), low: bytes.readUInt32BE(52) },
  };
}

/** Distance of frames in the index: frames in between are found by a scan. */
const markEveryBytes = 64 * 1024;
const headBlockBytes = 64 * 1024;

/** One segment of the log: its file, its used length, and an index of its commits. */
export class Segment {
  /** Offset of the next frame. */
  end = segmentHeaderLength;
  /** Bytes of the file that are already written, with frames or zeros. */
  allocated = 0;
  readonly #markSeqs: number[] = [];
  readonly #markOffsets: number[] = [];
  /** False: the index of its frames is not built yet. */
  isIndexed = false;
  #block: { at: number; bytes: Buffer } | undefined;

  constructor(
    readonly path: string,
    readonly file: LogFile,
    readonly header: SegmentHeader,
  ) {}

  /** Adds a frame at the end of the segment. */
  noteFrame({ firstSeq, commits, length }: FrameHead): void {
    const last = this.#markOffsets.at(-1);
    if (commits > 0 && (last === undefined || this.end - last >= markEveryBytes)) {
      this.#markSeqs.push(firstSeq);
      this.#markOffsets.push(this.end);
    }
    this.end += length;
  }

  /** Reads the heads of all frames of a complete segment. */
  buildIndex(): void {
    let lsn = this.header.firstLsn;
    for (;;) {
      const head = this.headAt(this.end);
      if (head?.lsn !== lsn) break;
      this.noteFrame(head);
      lsn++;
    }
    this.isIndexed = true;
  }

  /** The last indexed frame that begins at or before commit `seq`. */
  markBefore(seq: number): number {
    let low = 0;
    let high = this.#markSeqs.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#markSeqs[middle]! <= seq) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? segmentHeaderLength : this.#markOffsets[low - 1]!;
  }

  headAt(at: number): FrameHead | undefined {
    const block = this.#block;
    if (block && at >= block.at && at + frameHeadLength <= block.at + block.bytes.length) {
      return readHead(block.bytes, at - block.at);
    }
    const bytes = Buffer.allocUnsafe(headBlockBytes);
    const count = this.file.read(bytes, at);
    this.#block = { at, bytes: bytes.subarray(0, count) };
    return readHead(this.#block.bytes, 0);
  }

  /** Drops the cached block: the file was written. */
  forgetBlock(): void {
    this.#block = undefined;
  }

  /** The frame at this offset, checked; undefined when it is invalid. */
  frameAt(at: number, head: FrameHead): Buffer | undefined {
    if (at + head.length > this.end) return undefined;
    const frame = Buffer.allocUnsafe(head.length);
    if (this.file.read(frame, at) < head.length) return undefined;
    return isSound(frame, this.header.salt) ? frame : undefined;
  }

  /**
   * Reads and checks all frames from the first on. Stops at the first that is invalid or has an
   * unexpected number; `later` then says whether a valid frame follows it.
   */
  scan(visit: (frame: Buffer, head: FrameHead) => void): { nextLsn: number; later: boolean } {
    const bytes = Buffer.allocUnsafe(this.file.size());
    const all = bytes.subarray(0, this.file.read(bytes, 0));
    this.allocated = all.length;
    let lsn = this.header.firstLsn;
    for (;;) {
      const head = readHead(all, this.end);
      if (!head || head.lsn !== lsn || this.end + head.length > all.length) break;
      const frame = all.subarray(this.end, this.end + head.length);
      if (!isSound(frame, this.header.salt)) break;
      visit(frame, head);
      this.noteFrame(head);
      lsn++;
    }
    this.isIndexed = true;
    return { nextLsn: lsn, later: this.#hasFrameBehind(all, this.end, lsn) };
  }

  /** The frames from this number on, checked. */
  *framesFrom(firstLsn: number): Iterable<{ frame: Buffer; head: FrameHead }> {
    if (!this.isIndexed) this.buildIndex();
    for (let at = segmentHeaderLength; at < this.end;) {
      const head = this.headAt(at);
      if (!head) throw damagedFrame(this, at);
      if (head.lsn >= firstLsn) {
        const frame = this.frameAt(at, head);
        if (!frame) throw damagedFrame(this, at);
        yield { frame, head };
      }
      at += head.length;
    }
  }

  /** A frame is written only after the one before it is durable, so none can follow a torn one. */
  #hasFrameBehind(all: Buffer, from: number, lsn: number): boolean {
    for (let at = from; at + frameHeadLength <= all.length; at += frameAlignment) {
      const head = readHead(all, at);
      if (!head || head.lsn <= lsn || at + head.length > all.length) continue;
      if (isSound(all.subarray(at, at + head.length), this.header.salt)) return true;
    }
    return false;
  }
}

const recentCommits = 4_096;
const maxRecentBytes = 4 * 2 ** 20;

/** A frame that was read, and the last commit read from it. */
interface OpenFrame {
  segment: Segment;
  at: number;
  bytes: Buffer;
  firstSeq: number;
  commits: number;
  /** The commit that begins at `commitAt`. */
  seq: number;
  commitAt: number;
}

/**
 * Finds commits in the segments by number. The newest are cached, because most readers follow the
 * end of the log; the others read sequentially.
 */
export class LogReader {
  /** The last commits without a gap, starting at `#firstRecent`. */
  #recent: Buffer[] = [];
  #firstRecent = 0;
  #recentBytes = 0;
  /** The last commit that was read: without readers nothing is cached. */
  #lastRead = -Infinity;
  #frame: OpenFrame | undefined;

  remember(seq: number, bytes: Buffer): void {
    if (seq - this.#lastRead > recentCommits) {
      if (this.#recent.length > 0) this.#forgetRecent();
      return;
    }
    const isNext = seq === this.#firstRecent + this.#recent.length;
    if (!isNext || this.#recent.length >= recentCommits || this.#recentBytes > maxRecentBytes) {
      this.#forgetRecent();
      this.#firstRecent = seq;
    }
    this.#recent.push(bytes);
    this.#recentBytes += bytes.length;
  }

  #forgetRecent(): void {
    this.#recent = [];
    this.#recentBytes = 0;
  }

  /** Drops the frame it has read: its segment may have been removed. */
  forget(): void {
    this.#frame = undefined;
  }

  /** Drops everything: commits were rolled back, and new ones will reuse their numbers. */
  forgetAll(): void {
    this.#frame = undefined;
    this.#forgetRecent();
  }

  read(segments: readonly Segment[], seq: number): Buffer | undefined {
    this.#lastRead = seq;
    const recent = this.#recent[seq - this.#firstRecent];
    if (recent) return recent;
    const frame = this.#frameOf(segments, seq);
    if (!frame) return undefined;
    if (seq < frame.seq) {
      frame.seq = frame.firstSeq;
      frame.commitAt = frameHeadLength;
    }
    const { bytes } = frame;
    for (; frame.seq < seq; frame.seq++) {
      frame.commitAt += 4 + bytes.readUInt32BE(frame.commitAt);
    }
    const start = frame.commitAt + 4;
    // Copied: a reader that keeps one commit must not keep the whole frame.
    return Buffer.from(bytes.subarray(start, start + bytes.readUInt32BE(frame.commitAt)));
  }

  #frameOf(segments: readonly Segment[], seq: number): OpenFrame | undefined {
    const open = this.#frame;
    if (open && has(open, seq) && ownerOf(segments, seq) === open.segment) return open;
    const place = this.locate(segments, seq);
    return place && (this.#frame = openFrame(place.segment, place.at));
  }

  /** The frame that holds a commit. */
  locate(segments: readonly Segment[], seq: number): { segment: Segment; at: number } | undefined {
    const segment = ownerOf(segments, seq);
    if (!segment) return undefined;
    if (!segment.isIndexed) segment.buildIndex();
    const open = this.#frame;
    const isNext = open?.segment === segment && open.firstSeq + open.commits === seq;
    let at = isNext ? open.at + open.bytes.length : segment.markBefore(seq);
    while (at < segment.end) {
      const head = segment.headAt(at);
      if (!head) throw damagedFrame(segment, at);
      if (head.commits > 0 && head.firstSeq > seq) return undefined;
      if (head.commits > 0 && head.firstSeq + head.commits > seq) return { segment, at };
      at += head.length;
    }
    return undefined;
  }
}

/** A rolled-back commit is in an earlier segment than the commit that reuses its number. */
function ownerOf(segments: readonly Segment[], seq: number): Segment | undefined {
  return segments.findLast(({ header }) => header.firstSeq <= seq);
}

function has({ firstSeq, commits }: OpenFrame, seq: number): boolean {
  return seq >= firstSeq && seq < firstSeq + commits;
}

function openFrame(segment: Segment, at: number): OpenFrame {
  const head = segment.headAt(at)!;
  const bytes = segment.frameAt(at, head);
  if (!bytes) throw damagedFrame(segment, at);
  const { firstSeq, commits } = readHead(bytes, 0)!;
  return { segment, at, bytes, firstSeq, commits, seq: firstSeq, commitAt: frameHeadLength };
}

function damagedFrame({ path }: Segment, at: number) {
  return refuse(
    'CORRUPT',
    `The log ${path} is damaged at byte ${at}. Stop the server and run "ctl db verify"; then put ` +
      'the file back as it was, or restore a backup into a new directory with "ctl db restore".',
  );
}
