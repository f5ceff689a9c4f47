import { type HeaderList, emptyTable } from './hpack.js';
import type { ConnectionMemory } from '../base/socket.js';
import { frameTypes, type ErrorName, flags, frameHeaderBytes } from './frames.js';

/** The interface of the connection for its streams. */
export interface StreamHost {
  readonly memory: ConnectionMemory;
  /** The stream has something to send. */
  enqueue(stream: Http2Stream): void;
  reset(stream: Http2Stream, code: ErrorName): void;
  /** Sends WINDOW_UPDATE for the stream. */
  grant(stream: Http2Stream, byteCount: number): void;
}

/** One stream: a request and its response. */
export class Http2Stream {
  user: StreamUser | undefined;
  outgoing: OutgoingBytes | undefined;
  /** END_STREAM has not been received. */
  isRequestOpen = true;
  isClosed = false;
  /** True while it is in the send queue. */
  isQueued = false;
  /** Remaining body bytes by content-length. */
  expectedBytes: number | undefined;
  #headers: HeaderList | undefined;
  #trailers: HeaderList | undefined;
  #areHeadersSent = false;
  #hasEnd = false;
  #isEndSent = false;
  #isPaused = false;
  /** Bytes received while paused. */
  #held: Buffer[] | undefined;
  #heldBytes = 0;
  #isEndHeld = false;
  /** Bytes read since the last WINDOW_UPDATE. */
  #readBytes = 0;

  constructor(
    private readonly host: StreamHost,
    readonly id: number,
    /** Send window. */
    public sendWindowBytes: number,
    /** Receive window. */
    private receiveWindowBytes: number,
  ) {}

  get memory(): ConnectionMemory {
    return this.host.memory;
  }

  /** The peer's flow-control window of this stream is exhausted. */
  get isWindowExhausted(): boolean {
    return this.sendWindowBytes <= 0;
  }

  get hasHeaders(): boolean {
    return this.#headers !== undefined || this.#areHeadersSent;
  }

  /** Starts the response; later calls are ignored. */
  respond(headers: HeaderList): void {
    if (this.hasHeaders || this.isClosed) return;
    this.#headers = headers;
    this.host.enqueue(this);
  }

  /** There is more to send. */
  wake(): void {
    if (!this.isClosed) this.host.enqueue(this);
  }

  /** Ends the response after the queued bytes. */
  end(trailers?: HeaderList): void {
    if (this.#hasEnd || this.isClosed) return;
    this.#hasEnd = true;
    this.#trailers = trailers;
    this.host.enqueue(this);
  }

  reset(code: ErrorName): void {
    if (!this.isClosed) this.host.reset(this, code);
  }

  /** Buffers received bytes until `resume`, limited by the receive window. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    // Deferred: the caller is not ready to receive before it has returned.
    if (this.#held || this.#isEndHeld) process.nextTick(readHeld, this);
  }

  readHeld(): void {
    while (this.#held && !this.#isPaused && !this.isClosed) {
      const chunk = this.#held.shift()!;
      if (this.#held.length === 0) this.#held = undefined;
      this.#release(chunk.length);
      this.#read(chunk, 0, chunk.length);
    }
    if (this.#isPaused || this.isClosed || !this.#isEndHeld) return;
    this.#isEndHeld = false;
    this.user?.takeEnd();
  }

  /** False when the receive window is exceeded. */
  fits(byteCount: number): boolean {
    return byteCount <= this.receiveWindowBytes;
  }

  /**
   * `byteCount` counts for flow control, including padding. False when the memory limit does not
   * allow buffering.
   */
  receive(bytes: Buffer, start: number, end: number, byteCount: number): boolean {
    this.receiveWindowBytes -= byteCount;
    const padding = byteCount - (end - start);
    if (padding > 0) this.#grant(padding);
    if (end === start) return true;
    if (!this.#isPaused && !this.#held) {
      this.#read(bytes, start, end);
      return true;
    }
    if (!this.memory.tryReserve(end - start)) return false;
    (this.#held ??= []).push(Buffer.from(bytes.subarray(start, end)));
    this.#heldBytes += end - start;
    return true;
  }

  receiveEnd(): void {
    this.isRequestOpen = false;
    if (this.#isPaused || this.#held) this.#isEndHeld = true;
    else this.user?.takeEnd();
  }

  /** Writes headers, DATA and trailers as flow control allows; returns the DATA bytes. */
  send(writer: FrameWriter, windowBytes: number, frameBytes: number): number {
    if (this.#headers) {
      const isAll = this.#hasEnd && this.#trailers === undefined && this.#unsentBytes === 0;
      writer.headers(this.id, this.#headers.block, isAll, frameBytes);
      this.#headers = undefined;
      this.#areHeadersSent = true;
      if (isAll) this.#isEndSent = true;
    }
    const count = Math.min(this.#unsentBytes, windowBytes, this.sendWindowBytes, frameBytes);
    if (count > 0) this.#sendData(writer, count);
    if (this.#hasEnd && !this.#isEndSent && this.#unsentBytes === 0)
      this.#sendEnd(writer, frameBytes);
    return Math.max(0, count);
  }

  get isEndSent(): boolean {
    return this.#isEndSent;
  }

  get hasMore(): boolean {
    return this.#unsentBytes > 0;
  }

  /** Drops all buffered data. */
  close(): void {
    this.isClosed = true;
    this.#held = this.#headers = this.#trailers = undefined;
    this.#release(this.#heldBytes);
    this.outgoing?.forget();
    this.user?.takeClose();
  }

  #release(byteCount: number): void {
    this.#heldBytes -= byteCount;
    this.memory.release(byteCount);
  }

  get #unsentBytes(): number {
    return this.outgoing?.unsentBytes ?? 0;
  }

  #sendData(writer: FrameWriter, count: number): void {
    const outgoing = this.outgoing!;
    const isAll = this.#hasEnd && this.#trailers === undefined && count === outgoing.unsentBytes;
    writer.frameHeader(count, frameTypes.data, isAll ? 1 : 0, this.id);
    outgoing.take(writer, count);
    this.sendWindowBytes -= count;
    if (isAll) this.#isEndSent = true;
  }

  #sendEnd(writer: FrameWriter, frameBytes: number): void {
    this.#isEndSent = true;
    if (this.#trailers) writer.headers(this.id, this.#trailers.block, true, frameBytes);
    else writer.frameHeader(0, frameTypes.data, 1, this.id);
  }

  #read(bytes: Buffer, start: number, end: number): void {
    this.user?.takeBytes(bytes, start, end);
    this.#grant(end - start);
  }

  #grant(byteCount: number): void {
    this.#readBytes += byteCount;
    // Rarely, but before the window is exhausted.
    if (this.#readBytes < grantBytes || !this.isRequestOpen || this.isClosed) return;
    this.host.grant(this, this.#readBytes);
    this.receiveWindowBytes += this.#readBytes;
    this.#readBytes = 0;
  }
}

const grantBytes = 512 * 1024;

function readHeld(stream: Http2Stream): void {
  stream.readHeld();
}

/** The user of a stream. None of these methods may throw. */
export interface StreamUser {
  /** Request bytes from `start` to `end`; the buffer is reused after this returns. */
  takeBytes(bytes: Buffer, start: number, end: number): void;
  /** The request is complete. */
  takeEnd(): void;
  /** The stream is closed, for any reason. */
  takeClose(): void;
  /** True for watch streams, whose client may stop reading for minutes. */
  readonly isExemptFromReadRate: boolean;
  /** Called every few seconds with the monotonic time, to drop slow peers. */
  checkTimeouts(now: number): void;
}

/** Response bytes that wait to be sent. */
export interface OutgoingBytes {
  readonly unsentBytes: number;
  take(writer: ByteWriter, count: number): void;
  /** The bytes taken since the last call have been written. */
  takeSent(): void;
  /** The stream is closed. */
  forget(): void;
}

/** Collects the bytes of one write. */
export interface ByteWriter {
  /** The prefix of a gRPC message that is not compressed. */
  messagePrefix(length: number): void;
  bytes(source: Uint8Array, start: number, end: number): void;
}

/**
 * The open streams of a connection by ID. A single stream is stored outside the map: many clients
 * have one at a time, and filling and emptying a map for each call is slow.
 */
export class OpenStreams {
  #single: Http2Stream | undefined;
  readonly #others = new Map<number, Http2Stream>();

  get size(): number {
    return this.#others.size + (this.#single ? 1 : 0);
  }

  get(id: number): Http2Stream | undefined {
    const single = this.#single;
    if (single?.id === id) return single;
    return this.#others.size === 0 ? undefined : this.#others.get(id);
  }

  add(stream: Http2Stream): void {
    if (this.size === 0) this.#single = stream;
    else this.#others.set(stream.id, stream);
  }

  delete(stream: Http2Stream): void {
    if (this.#single === stream) this.#single = undefined;
    else this.#others.delete(stream.id);
  }

  /** A snapshot of the open streams. */
  all(): Http2Stream[] {
    const others = [...this.#others.values()];
    return this.#single ? [this.#single, ...others] : others;
  }

  clear(): void {
    this.#single = undefined;
    this.#others.clear();
  }
}

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
