import type { HeaderList } from '../header-list.js';
import type { OutgoingBytes, ServerStream, StreamUser } from '../server-stream.js';
import type { ConnectionMemory } from './connection-memory.js';
import type { FrameWriter } from './frame-writer.js';
import { frameTypes, type ErrorName } from './protocol.js';

/** What a stream asks of its connection. */
export interface StreamHost {
  readonly memory: ConnectionMemory;
  /** The stream has something to send. */
  enqueue(stream: Http2Stream): void;
  reset(stream: Http2Stream, code: ErrorName): void;
  /** Lets the peer send so much more. */
  grant(stream: Http2Stream, byteCount: number): void;
}

/** One request and its answer. */
export class Http2Stream implements ServerStream {
  user: StreamUser | undefined;
  outgoing: OutgoingBytes | undefined;
  /** The peer has not said all. */
  isRequestOpen = true;
  isClosed = false;
  /** It stands in the line of those that have something to send. */
  isQueued = false;
  /** How much of the body is still to come, where the headers say it. */
  expectedBytes: number | undefined;
  #headers: HeaderList | undefined;
  #trailers: HeaderList | undefined;
  #areHeadersSent = false;
  #hasEnd = false;
  #isEndSent = false;
  #isPaused = false;
  /** What came while nobody read. */
  #held: Buffer[] | undefined;
  #heldBytes = 0;
  #isEndHeld = false;
  /** Read, but not yet granted anew. */
  #readBytes = 0;

  constructor(
    private readonly host: StreamHost,
    readonly id: number,
    /** How much the peer takes. */
    public sendWindowBytes: number,
    /** How much it may send. */
    private receiveWindowBytes: number,
  ) {}

  get memory(): ConnectionMemory {
    return this.host.memory;
  }

  /** The peer lets us send nothing on this stream. */
  get isWindowExhausted(): boolean {
    return this.sendWindowBytes <= 0;
  }

  get hasHeaders(): boolean {
    return this.#headers !== undefined || this.#areHeadersSent;
  }

  /** Begins the answer; only the first time counts. */
  respond(headers: HeaderList): void {
    if (this.hasHeaders || this.isClosed) return;
    this.#headers = headers;
    this.host.enqueue(this);
  }

  /** There is more to send. */
  wake(): void {
    if (!this.isClosed) this.host.enqueue(this);
  }

  /** Ends the answer when all is sent. */
  end(trailers?: HeaderList): void {
    if (this.#hasEnd || this.isClosed) return;
    this.#hasEnd = true;
    this.#trailers = trailers;
    this.host.enqueue(this);
  }

  reset(code: ErrorName): void {
    if (!this.isClosed) this.host.reset(this, code);
  }

  /** What comes is kept until `resume`, as much as fits the window. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    // Not at once: whoever resumes is not ready to hear before it has returned.
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

  /** False when the peer sends more than it may. */
  fits(byteCount: number): boolean {
    return byteCount <= this.receiveWindowBytes;
  }

  /**
   * `byteCount` is what counts for the window: padding, too. False when there is no memory for
   * what nobody reads yet.
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

  /** Sends what it may; true when there was anything. */
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

  /** Forgets what nobody will read or send. */
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
    writer.frameHead(count, frameTypes.data, isAll ? 1 : 0, this.id);
    outgoing.take(writer, count);
    this.sendWindowBytes -= count;
    if (isAll) this.#isEndSent = true;
  }

  #sendEnd(writer: FrameWriter, frameBytes: number): void {
    this.#isEndSent = true;
    if (this.#trailers) writer.headers(this.id, this.#trailers.block, true, frameBytes);
    else writer.frameHead(0, frameTypes.data, 1, this.id);
  }

  #read(bytes: Buffer, start: number, end: number): void {
    this.user?.takeBytes(bytes, start, end);
    this.#grant(end - start);
  }

  #grant(byteCount: number): void {
    this.#readBytes += byteCount;
    // Seldom, but before the peer has to wait.
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
