import type { Clock } from '@millrace/kit/clock';
import { Allowance } from './allowance.js';
import { rstStream, windowUpdate } from './control-frames.js';
import { OpenStreams } from './open-streams.js';
import type { PeerSettings } from './peer-settings.js';
import { ConnectionError, largestWindowBytes, type ErrorName } from './protocol.js';
import type { RequestHeaders } from './request-headers.js';
import type { SendLine } from './send-line.js';
import { Http2Stream, type StreamHost, type StreamUser } from './stream.js';

export const mostStreams = 1_000;
// A large request must not wait for us at every 64 KiB.
export const streamWindowBytes = 1024 * 1024;

const mostRememberedResets = 1_000;
// Requests on their way take no more of one connection than that, looked at every so often.
const mostWaitingBytes = 256 * 1024 * 1024;
const betweenLooksBytes = 8 * 1024 * 1024;

export interface StreamsParts {
  readonly clock: Clock;
  /** A request begins. Undefined: it is answered already. Must not throw. */
  open(stream: Http2Stream, headers: RequestHeaders): StreamUser | undefined;
}

/** All streams of a connection, and what the peer may do with each. */
export class Streams implements StreamHost {
  readonly #open = new OpenStreams();
  /** Streams that we ended: what the peer sent before it heard of it is passed over. */
  readonly #resetIds = new Set<number>();
  // What is harmless now and then, but costs us more than the peer (RFC 9113, 10.5).
  readonly #resets: Allowance;
  readonly #mistakes: Allowance;
  /** Received since the streams were last looked at. */
  #unseenBytes = 0;
  /** The last one that the peer opened. */
  lastId = 0;
  /** No more are opened. */
  isClosing = false;
  /** Hears when none is open any more. */
  onIdle: (() => void) | undefined;

  constructor(
    private readonly parts: StreamsParts,
    private readonly line: SendLine,
    private readonly peer: PeerSettings,
  ) {
    this.#resets = new Allowance(parts.clock, 1_000, 100);
    this.#mistakes = new Allowance(parts.clock, 1_000, 100);
  }

  get isIdle(): boolean {
    return this.#open.size === 0;
  }

  takeHeaders(id: number, isLast: boolean, headers: RequestHeaders): void {
    const stream = this.#open.get(id);
    if (stream) return this.#takeTrailers(stream, isLast, headers);
    if (id <= this.lastId) {
      if (this.#resetIds.has(id)) return;
      const code = id === this.lastId ? 'STREAM_CLOSED' : 'PROTOCOL_ERROR';
      throw new ConnectionError(code, `stream ${id} is closed`);
    }
    this.lastId = id;
    if (this.isClosing) return this.#remember(id);
    if (this.#open.size >= mostStreams) return this.#refuse(id, 'REFUSED_STREAM');
    if (headers.isTooLarge) return this.#refuse(id, 'ENHANCE_YOUR_CALM');
    if (!headers.isRequest) return this.#refuse(id, 'PROTOCOL_ERROR');
    this.#begin(id, isLast, headers);
  }

  takeData(
    id: number,
    isLast: boolean,
    bytes: Buffer,
    start: number,
    end: number,
    windowBytes: number,
  ): void {
    const stream = this.#open.get(id);
    if (!stream) return this.#takeLateData(id);
    if (!stream.isRequestOpen) return this.refuseStream(stream, 'STREAM_CLOSED');
    if (!stream.fits(windowBytes)) return this.refuseStream(stream, 'FLOW_CONTROL_ERROR');
    if (stream.expectedBytes !== undefined) {
      stream.expectedBytes -= end - start;
      const isWrong = stream.expectedBytes < 0 || (isLast && stream.expectedBytes > 0);
      if (isWrong) return this.refuseStream(stream, 'PROTOCOL_ERROR');
    }
    this.#unseenBytes += end - start;
    if (this.#unseenBytes >= betweenLooksBytes && this.#areTooMany()) {
      return this.refuseStream(stream, 'ENHANCE_YOUR_CALM');
    }
    if (isLast) stream.isRequestOpen = false;
    stream.receive(bytes, start, end, windowBytes);
    if (isLast && !stream.isClosed) stream.receiveEnd();
  }

  takeReset(id: number): void {
    const stream = this.#open.get(id);
    if (!stream) return this.#mustHaveBeen(id);
    // CVE-2023-44487: to open and reset costs the peer nothing.
    if (!this.#resets.spend()) throw new ConnectionError('ENHANCE_YOUR_CALM', 'too many resets');
    this.#drop(stream);
  }

  takeWindow(id: number, byteCount: number): void {
    const stream = this.#open.get(id);
    if (!stream) return this.#mustHaveBeen(id);
    if (byteCount === 0) return this.refuseStream(stream, 'PROTOCOL_ERROR');
    stream.sendWindowBytes += byteCount;
    if (stream.sendWindowBytes > largestWindowBytes) {
      return this.refuseStream(stream, 'FLOW_CONTROL_ERROR');
    }
    if (stream.hasMore) this.line.enqueue(stream);
  }

  /** The peer changed the window with which streams begin: that of open ones changes as much. */
  widenAll(byteCount: number): void {
    for (const stream of this.#open.all()) {
      stream.sendWindowBytes += byteCount;
      if (stream.sendWindowBytes > largestWindowBytes) {
        throw new ConnectionError('FLOW_CONTROL_ERROR', 'a window is too large');
      }
      if (byteCount > 0 && stream.hasMore) this.line.enqueue(stream);
    }
  }

  /** The peer broke a rule that concerns this stream alone. */
  refuseId(id: number, code: ErrorName): void {
    const stream = this.#open.get(id);
    if (!stream) throw new ConnectionError(code, `stream ${id} is not open`);
    this.refuseStream(stream, code);
  }

  refuseStream(stream: Http2Stream, code: ErrorName): void {
    this.#refuse(stream.id, code);
    this.#drop(stream);
  }

  enqueue(stream: Http2Stream): void {
    this.line.enqueue(stream);
  }

  reset(stream: Http2Stream, code: ErrorName): void {
    this.#remember(stream.id);
    this.line.control(rstStream(stream.id, code));
    this.#drop(stream);
  }

  grant(stream: Http2Stream, byteCount: number): void {
    this.line.control(windowUpdate(stream.id, byteCount));
  }

  /** Its answer is sent. */
  end(stream: Http2Stream): void {
    if (stream.isRequestOpen) this.#remember(stream.id);
    this.#drop(stream);
  }

  /** Gives up requests that do not go on. */
  checkPace(): void {
    for (const stream of this.#open.all()) stream.user?.checkPace();
  }

  closeAll(): void {
    const streams = this.#open.all();
    this.#open.clear();
    for (const stream of streams) stream.close();
  }

  #begin(id: number, isLast: boolean, headers: RequestHeaders): void {
    const { initialWindowBytes } = this.peer;
    const stream = new Http2Stream(this, id, initialWindowBytes, streamWindowBytes);
    const { contentLength } = headers;
    if (isLast && contentLength !== undefined && contentLength > 0) {
      return this.#refuse(id, 'PROTOCOL_ERROR');
    }
    stream.expectedBytes = contentLength;
    stream.isRequestOpen = !isLast;
    this.#open.add(stream);
    stream.user = this.parts.open(stream, headers);
    if (isLast && !stream.isClosed) stream.receiveEnd();
  }

  #takeTrailers(stream: Http2Stream, isLast: boolean, headers: RequestHeaders): void {
    if (!stream.isRequestOpen) return this.refuseStream(stream, 'STREAM_CLOSED');
    if (headers.isTooLarge) return this.refuseStream(stream, 'ENHANCE_YOUR_CALM');
    const { expectedBytes = 0 } = stream;
    if (!isLast || !headers.areTrailers || expectedBytes > 0) {
      return this.refuseStream(stream, 'PROTOCOL_ERROR');
    }
    stream.receiveEnd();
  }

  #takeLateData(id: number): void {
    if (this.#resetIds.has(id)) return;
    this.#mustHaveBeen(id);
    this.#refuse(id, 'STREAM_CLOSED');
  }

  #areTooMany(): boolean {
    let waitingBytes = 0;
    for (const stream of this.#open.all()) waitingBytes += stream.waitingBytes;
    if (waitingBytes > mostWaitingBytes) return true;
    this.#unseenBytes = 0;
    return false;
  }

  #mustHaveBeen(id: number): void {
    if (id <= this.lastId && id % 2 === 1) return;
    throw new ConnectionError('PROTOCOL_ERROR', `stream ${id} is not open`);
  }

  #refuse(id: number, code: ErrorName): void {
    if (!this.#mistakes.spend()) throw new ConnectionError('ENHANCE_YOUR_CALM', 'too many errors');
    this.#remember(id);
    this.line.control(rstStream(id, code));
  }

  #remember(id: number): void {
    this.#resetIds.add(id);
    if (this.#resetIds.size <= mostRememberedResets) return;
    for (const oldest of this.#resetIds) return void this.#resetIds.delete(oldest);
  }

  #drop(stream: Http2Stream): void {
    this.#open.delete(stream);
    stream.close();
    if (this.#open.size === 0) this.onIdle?.();
  }
}
