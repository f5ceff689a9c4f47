import type { Clock } from '@millrace/kit/clock';
import { Allowance } from './allowance.js';
import type { ConnectionMemory } from './connection-memory.js';
import { rstStream, windowUpdate } from './control-frames.js';
import { OpenStreams } from './open-streams.js';
import type { PeerSettings } from './peer-settings.js';
import { ConnectionError, largestWindowBytes, type ErrorName } from './protocol.js';
import type { RequestHeaders } from './request-headers.js';
import type { SendLine } from './send-line.js';
import type { StreamUser } from '../server-stream.js';
import { Http2Stream, type StreamHost } from './stream.js';

export const mostStreams = 1_000;
// A large request must not wait for us at every 64 KiB.
export const streamWindowBytes = 1024 * 1024;

const maxRememberedStreams = 1_000;

export interface StreamsParts {
  readonly clock: Clock;
  readonly memory: ConnectionMemory;
  /** A request begins. Undefined: it is answered already. Must not throw. */
  open(stream: Http2Stream, headers: RequestHeaders): StreamUser | undefined;
}

/** A stream that we ended: what the peer sent before it noticed is ignored. */
interface EndedStream {
  sendWindowBytes: number;
  /** It was not told yet that the rest of its request is not needed. */
  isResetDue: boolean;
}

/** All streams of a connection, and what the peer may do with each. */
export class Streams implements StreamHost {
  readonly #open = new OpenStreams();
  /** Streams that we ended while the peer was still sending. */
  readonly #ended = new Map<number, EndedStream>();
  // What is harmless now and then, but costs us more than the peer (RFC 9113, 10.5).
  readonly #resets: Allowance;
  readonly #mistakes: Allowance;
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

  get memory(): ConnectionMemory {
    return this.parts.memory;
  }

  get isIdle(): boolean {
    return this.#open.size === 0;
  }

  takeHeaders(
    id: number,
    isLast: boolean,
    headers: RequestHeaders,
    isSelfDependent: boolean,
  ): void {
    const stream = this.#open.get(id);
    if (stream && isSelfDependent) return this.refuseStream(stream, 'PROTOCOL_ERROR');
    if (stream) return this.#takeTrailers(stream, isLast, headers);
    if (id <= this.lastId) {
      if (this.#ended.has(id)) return;
      const code = id === this.lastId ? 'STREAM_CLOSED' : 'PROTOCOL_ERROR';
      throw new ConnectionError(code, `stream ${id} is closed`);
    }
    this.lastId = id;
    if (this.isClosing) return this.#remember(id);
    if (this.#open.size >= mostStreams) return this.#refuse(id, 'REFUSED_STREAM');
    if (headers.isTooLarge) return this.#refuse(id, 'ENHANCE_YOUR_CALM');
    if (!headers.isRequest || isSelfDependent) return this.#refuse(id, 'PROTOCOL_ERROR');
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
    if (isLast) stream.isRequestOpen = false;
    if (!stream.receive(bytes, start, end, windowBytes)) {
      return this.refuseStream(stream, 'ENHANCE_YOUR_CALM');
    }
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
    if (!stream) return this.#takeLateWindow(id, byteCount);
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

  /** A PRIORITY frame in which the stream depends on itself; the stream may be idle. */
  refuseSelfDependency(id: number): void {
    const stream = this.#open.get(id);
    if (stream) this.refuseStream(stream, 'PROTOCOL_ERROR');
    else this.#spendMistake(id, 'PROTOCOL_ERROR');
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
    this.#remember(stream.id, stream.sendWindowBytes);
    this.line.control(rstStream(stream.id, code));
    this.#drop(stream);
  }

  grant(stream: Http2Stream, byteCount: number): void {
    this.line.control(windowUpdate(stream.id, byteCount));
  }

  /** Its answer is sent. */
  end(stream: Http2Stream): void {
    if (stream.isRequestOpen) this.#remember(stream.id, stream.sendWindowBytes, true);
    this.#drop(stream);
  }

  /** Gives up requests that do not arrive and responses that are not read. */
  checkPace(now: number): void {
    for (const [id, ended] of this.#ended) this.#stopRequest(id, ended);
    for (const stream of this.#open.all()) stream.user?.checkPace(now);
  }

  /** True while a response waits for a reader that must keep up. */
  get hasWaitingResponse(): boolean {
    return this.#open
      .all()
      .some(({ hasMore, user }) => hasMore && user?.isExemptFromReadRate !== true);
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
    const ended = this.#ended.get(id);
    if (ended) return this.#stopRequest(id, ended);
    this.#mustHaveBeen(id);
    this.#refuse(id, 'STREAM_CLOSED');
  }

  /** The window of a stream that we ended still must not overflow (RFC 9113, 6.9.1). */
  #takeLateWindow(id: number, byteCount: number): void {
    const ended = this.#ended.get(id);
    if (!ended) return this.#mustHaveBeen(id);
    ended.sendWindowBytes += byteCount;
    if (ended.sendWindowBytes > largestWindowBytes) this.#refuse(id, 'FLOW_CONTROL_ERROR');
  }

  /** Tells a peer that is still sending that its response is complete (RFC 9113, 8.1). */
  #stopRequest(id: number, ended: EndedStream): void {
    if (!ended.isResetDue) return;
    ended.isResetDue = false;
    this.line.control(rstStream(id, 'NO_ERROR'));
  }

  #mustHaveBeen(id: number): void {
    if (id <= this.lastId && id % 2 === 1) return;
    throw new ConnectionError('PROTOCOL_ERROR', `stream ${id} is not open`);
  }

  #refuse(id: number, code: ErrorName): void {
    this.#spendMistake(id, code);
    this.#remember(id);
  }

  #spendMistake(id: number, code: ErrorName): void {
    if (!this.#mistakes.spend()) throw new ConnectionError('ENHANCE_YOUR_CALM', 'too many errors');
    this.line.control(rstStream(id, code));
  }

  #remember(id: number, sendWindowBytes = 0, isResetDue = false): void {
    this.#ended.set(id, { sendWindowBytes, isResetDue });
    if (this.#ended.size <= maxRememberedStreams) return;
    for (const [oldest, ended] of this.#ended) {
      this.#stopRequest(oldest, ended);
      return void this.#ended.delete(oldest);
    }
  }

  #drop(stream: Http2Stream): void {
    this.#open.delete(stream);
    stream.close();
    if (this.#open.size === 0) this.onIdle?.();
  }
}
