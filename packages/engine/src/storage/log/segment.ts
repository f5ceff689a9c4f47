import { crc32 } from 'node:zlib';
import type { Hash64 } from '../../value/hash.js';
import type { LogFile } from '../file/files.js';
import { readUint48 } from '../../format/keys.js';
import { frameAlignment, frameHeadLength, isSound, readHead, type FrameHead } from './frame.js';

/**
 * A segment is a file of frames behind a header of one sector:
 *
 *   magic 16 | version u32 | number u48 | salt u32 | first lsn u48 | first seq u48 | time u48
 *   | chain before the first seq 8 | crc32 of all this u32
 */
export interface SegmentHeader {
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
