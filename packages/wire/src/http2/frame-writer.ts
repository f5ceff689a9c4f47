import { emptyTable } from './header-block.js';
import { flags, frameHeadBytes, frameTypes } from './protocol.js';

const slabBytes = 64 * 1024;
// As many as the largest write fills.
const mostSpareSlabs = 5;
// Less is copied sooner than handed to the system by itself.
const leastSharedBytes = 8 * 1024;
const messageHeadBytes = 5;

type Slab = ReturnType<typeof Buffer.allocUnsafeSlow>;

/**
 * Puts frames together for one write after the other, for all connections of a face. Small pieces
 * are copied side by side; large ones go out as they are, and may belong to several writes.
 */
export class FrameWriter {
  #slab = Buffer.allocUnsafeSlow(slabBytes);
  /** Where the run begins that is not yet among the parts. */
  #start = 0;
  #at = 0;
  #parts: Uint8Array[] = [];
  /** A write that is not done yet holds a part of the slab. */
  #isLent = false;
  /** Slabs that were filled since `settle`. */
  readonly #full: Slab[] = [];
  readonly #spare: Slab[] = [];
  /** The next header block must say that it uses no table. */
  isTableDue = false;

  frameHead(length: number, type: number, frameFlags: number, streamId: number): void {
    this.#reserve(frameHeadBytes);
    const slab = this.#slab;
    const at = this.#at;
    slab[at] = length >>> 16;
    slab[at + 1] = length >>> 8;
    slab[at + 2] = length;
    slab[at + 3] = type;
    slab[at + 4] = frameFlags;
    slab[at + 5] = streamId >>> 24;
    slab[at + 6] = streamId >>> 16;
    slab[at + 7] = streamId >>> 8;
    slab[at + 8] = streamId;
    this.#at = at + frameHeadBytes;
  }

  /** A header block, in as many frames as it takes. */
  headers(streamId: number, fields: Uint8Array, isLast: boolean, mostBytes: number): void {
    const block = this.isTableDue ? Buffer.concat([emptyTable, fields]) : fields;
    this.isTableDue = false;
    const ends = isLast ? flags.endStream : 0;
    if (block.length <= mostBytes) {
      this.frameHead(block.length, frameTypes.headers, ends | flags.endHeaders, streamId);
      return this.bytes(block, 0, block.length);
    }
    for (let at = 0; at < block.length; at += mostBytes) {
      const end = Math.min(at + mostBytes, block.length);
      const type = at === 0 ? frameTypes.headers : frameTypes.continuation;
      const done = end === block.length ? flags.endHeaders : 0;
      this.frameHead(end - at, type, (at === 0 ? ends : 0) | done, streamId);
      this.bytes(block, at, end);
    }
  }

  /** What stands before a message of gRPC that is not compressed. */
  messageHead(length: number): void {
    this.#reserve(messageHeadBytes);
    const slab = this.#slab;
    const at = this.#at;
    slab[at] = 0;
    slab[at + 1] = length >>> 24;
    slab[at + 2] = length >>> 16;
    slab[at + 3] = length >>> 8;
    slab[at + 4] = length;
    this.#at = at + messageHeadBytes;
  }

  bytes(source: Uint8Array, start: number, end: number): void {
    const length = end - start;
    const whole = length === source.length;
    if (length >= leastSharedBytes) {
      this.#cut();
      this.#parts.push(whole ? source : source.subarray(start, end));
      return;
    }
    this.#reserve(length);
    this.#slab.set(whole ? source : source.subarray(start, end), this.#at);
    this.#at += length;
  }

  /** All since the last time. */
  takeParts(): readonly Uint8Array[] {
    this.#cut();
    const parts = this.#parts;
    this.#parts = [];
    return parts;
  }

  /**
   * To be called when the parts that were taken are written. If the system has copied them, their
   * room is used again: to let go of it at the rate of a busy stream would make the collector run
   * through the whole heap every second.
   */
  settle(isCopied: boolean): void {
    if (!isCopied) this.#isLent = true;
    else {
      if (!this.#isLent) this.#start = this.#at = 0;
      for (const slab of this.#full) {
        if (this.#spare.length < mostSpareSlabs) this.#spare.push(slab);
      }
    }
    this.#full.length = 0;
  }

  #reserve(length: number): void {
    if (this.#slab.length - this.#at >= length) return;
    this.#cut();
    if (!this.#isLent) this.#full.push(this.#slab);
    this.#isLent = false;
    this.#slab = this.#spare.pop() ?? Buffer.allocUnsafeSlow(slabBytes);
    this.#start = this.#at = 0;
  }

  #cut(): void {
    if (this.#at > this.#start) this.#parts.push(this.#slab.subarray(this.#start, this.#at));
    this.#start = this.#at;
  }
}
