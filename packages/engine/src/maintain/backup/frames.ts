import { crc32 } from 'node:zlib';
import { refuse } from '../../value/refusal.js';

/**
 * Backups are made of frames, each with its own checksums, so that damage is found where it is:
 *
 *   length u32 | kind u8 | checksum of the payload u32 | checksum of these nine bytes u32 | payload
 */
export const frameKinds = {
  /** Describes the backup; first in a file. JSON. */
  header: 1,
  /** Collections and indexes; first in the data. JSON. */
  catalog: 2,
  /** Records of one collection. */
  records: 3,
  /** Commits of the change log. */
  commits: 4,
  /** Size and checksum of the data; last in a file. JSON. */
  trailer: 5,
  /** Raw rows (see core/rows.ts). */
  rows: 6,
} as const;

export interface Frame {
  kind: number;
  payload: Buffer;
  /** The complete frame, head and payload. */
  bytes: Buffer;
  /** Its offset. */
  at: number;
}

const headLength = 13;
// Frames have 64 KiB, or one large commit.
const maxFrameBytes = 256 * 1024 * 1024;
const checkedLength = 9;

export function encodeFrame(kind: number, payload: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(headLength + payload.length);
  frame.writeUInt32BE(payload.length, 0);
  frame[4] = kind;
  frame.writeUInt32BE(crc32(payload), 5);
  frame.writeUInt32BE(crc32(frame.subarray(0, checkedLength)), checkedLength);
  frame.set(payload, headLength);
  return frame;
}

/** Splits incoming bytes into frames. Throws where they are invalid. */
export class FrameReader {
  #pieces: Buffer[] = [];
  #have = 0;

  constructor(
    /** Names the input in errors. */
    private readonly source: string,
    /** Offset of the next frame. */
    public at = 0,
  ) {}

  push(bytes: Buffer): void {
    this.#pieces.push(bytes);
    this.#have += bytes.length;
  }

  /** The next frame; undefined when more bytes are needed. */
  next(): Frame | undefined {
    if (this.#have < headLength) return undefined;
    const head = this.#peek(headLength);
    if (crc32(head.subarray(0, checkedLength)) !== head.readUInt32BE(checkedLength)) {
      throw this.damaged('the head of a frame has another checksum than it says');
    }
    const length = headLength + head.readUInt32BE(0);
    if (length > maxFrameBytes) throw this.damaged(`a frame says that it has ${length} bytes`);
    if (this.#have < length) return undefined;
    const whole = this.#peek(length);
    const payload = whole.subarray(headLength);
    if (crc32(payload) !== whole.readUInt32BE(5)) {
      throw this.damaged('a frame has another checksum than it says');
    }
    const frame = { kind: whole[4]!, payload, bytes: whole, at: this.at };
    this.#drop(length);
    return frame;
  }

  /** Throws if bytes are left over. */
  end(): void {
    if (this.#have > 0) throw this.damaged('the last frame is cut off');
  }

  damaged(problem: string, at = this.at): Error {
    return damagedAt(this.source, at, problem);
  }

  #peek(length: number): Buffer {
    const first = this.#pieces[0]!;
    if (first.length < length) this.#pieces = [Buffer.concat(this.#pieces)];
    return this.#pieces[0]!.subarray(0, length);
  }

  #drop(length: number): void {
    const first = this.#pieces[0]!;
    if (first.length === length) this.#pieces.shift();
    else this.#pieces[0] = first.subarray(length);
    this.#have -= length;
    this.at += length;
  }
}

export function damagedAt(source: string, at: number, problem: string): Error {
  return refuse('CORRUPT', `${source} is damaged at byte ${at}: ${problem}.`);
}

export function jsonFrame(kind: number, value: unknown): Buffer {
  return encodeFrame(kind, Buffer.from(JSON.stringify(value)));
}
