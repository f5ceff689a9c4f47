import type { HeaderList } from './header-block.js';
import type { OutgoingBytes, StreamUser } from './stream-user.js';
import type { ConnectionMemory } from '../base/connection-memory.js';
import type { FrameWriter } from './frame-writer.js';
import { frameTypes, type ErrorName } from './protocol.js';

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
