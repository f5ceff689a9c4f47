import { emptyTable } from './header-block.js';
import { flags, frameHeaderBytes, frameTypes } from './protocol.js';

const slabBytes = 64 * 1024;
// As many as the largest write needs.
const maxSpareSlabs = 5;
// Smaller pieces are copied: that is faster than a separate write.
const minSharedBytes = 8 * 1024;
const messagePrefixBytes = 5;

type Slab = ReturnType<typeof Buffer.allocUnsafeSlow>;

/**
 * Builds the frames of one write at a time, for all connections of a listener. Small pieces are
 * copied into a slab; large ones are passed on without a copy and may be shared by several writes.
 */
export class FrameWriter {
  #slab = Buffer.allocUnsafeSlow(slabBytes);
  /** Start of the bytes that are not yet in the parts. */
  #start = 0;
  #at = 0;
  #parts: Uint8Array[] = [];
  /** True while an unfinished write uses the slab. */
  #isLent = false;
  /** Slabs filled since the last `settle`. */
  readonly #full: Slab[] = [];
  readonly #spare: Slab[] = [];
  /** The next header block must start with a dynamic table size update to 0. */
  isTableDue = false;

  frameHeader(length: number, type: number, frameFlags: number, streamId: number): void {
    this.#reserve(frameHeaderBytes);
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
    this.#at = at + frameHeaderBytes;
  }

  /** A header block as HEADERS and CONTINUATION frames. */
  headers(streamId: number, fields: Uint8Array, isLast: boolean, maxBytes: number): void {
    const block = this.isTableDue ? Buffer.concat([emptyTable, fields]) : fields;
    this.isTableDue = false;
    const ends = isLast ? flags.endStream : 0;
    if (block.length <= maxBytes) {
      this.frameHeader(block.length, frameTypes.headers, ends | flags.endHeaders, streamId);
      return this.bytes(block, 0, block.length);
    }
    for (let at = 0; at < block.length; at += maxBytes) {
      const end = Math.min(at + maxBytes, block.length);
      const type = at === 0 ? frameTypes.headers : frameTypes.continuation;
      const done = end === block.length ? flags.endHeaders : 0;
      this.frameHeader(end - at, type, (at === 0 ? ends : 0) | done, streamId);
      this.bytes(block, at, end);
    }
  }

  /** The prefix of an uncompressed gRPC message. */
  messagePrefix(length: number): void {
    this.#reserve(messagePrefixBytes);
    const slab = this.#slab;
    const at = this.#at;
    slab[at] = 0;
    slab[at + 1] = length >>> 24;
    slab[at + 2] = length >>> 16;
    slab[at + 3] = length >>> 8;
    slab[at + 4] = length;
    this.#at = at + messagePrefixBytes;
  }

  bytes(source: Uint8Array, start: number, end: number): void {
    const length = end - start;
    const whole = length === source.length;
    if (length >= minSharedBytes) {
      this.#cut();
      this.#parts.push(whole ? source : source.subarray(start, end));
      return;
    }
    this.#reserve(length);
    this.#slab.set(whole ? source : source.subarray(start, end), this.#at);
    this.#at += length;
  }

  /** Returns the parts of the current write and starts a new one. */
  takeParts(): readonly Uint8Array[] {
    this.#cut();
    const parts = this.#parts;
    this.#parts = [];
    return parts;
  }

  /**
   * Call after the parts were written. If the kernel has copied them, the slabs are reused:
   * allocating new ones at the rate of a busy stream would cause a major GC every second.
   */
  settle(isCopied: boolean): void {
    if (!isCopied) this.#isLent = true;
    else {
      if (!this.#isLent) this.#start = this.#at = 0;
      for (const slab of this.#full) {
        if (this.#spare.length < maxSpareSlabs) this.#spare.push(slab);
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
