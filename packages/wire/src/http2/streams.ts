import type { Clock } from '@millrace/kit/clock';
import { TokenBucket } from '@millrace/kit/token-bucket';
import type { ConnectionMemory } from '../base/socket.js';
import {
  rstStream,
  windowUpdate,
  type PeerSettings,
  ConnectionError,
  maxWindowBytes,
  type ErrorName,
} from './frames.js';
import { OpenStreams, type StreamUser, Http2Stream, type StreamHost } from './stream.js';
import type { SendQueue } from './send-queue.js';
import { roles, type Field, type FieldSink } from './hpack.js';

export const maxStreams = 1_000;
// Larger than the default, so that large requests do not wait for WINDOW_UPDATE every 64 KiB.
export const streamWindowBytes = 1024 * 1024;

const maxRememberedStreams = 1_000;

export interface StreamsParts {
  readonly clock: Clock;
  readonly memory: ConnectionMemory;
  /** Starts a request. Returns undefined when it is answered already. Must not throw. */
  open(stream: Http2Stream, headers: RequestHeaders): StreamUser | undefined;
}

/** A stream that we closed: frames that the peer sent before it noticed are ignored. */
interface EndedStream {
  sendWindowBytes: number;
  /** RST_STREAM(NO_ERROR) is still to be sent. */
  isResetDue: boolean;
  /** Remaining body bytes by content-length. */
  expectedBytes: number | undefined;
}

/** All streams of a connection and their states. */
export class Streams implements StreamHost {
  readonly #open = new OpenStreams();
  /** Streams that we closed while the peer was still sending. */
  readonly #ended = new Map<number, EndedStream>();
  // Rate limits of events that cost us more than the peer (RFC 9113, 10.5).
  readonly #resetLimit: TokenBucket;
  readonly #streamErrorLimit: TokenBucket;
  /** The highest stream ID that the peer opened. */
  lastId = 0;
  /** New streams are ignored after GOAWAY. */
  isClosing = false;
  /** Called when the last open stream has closed. */
  onIdle: (() => void) | undefined;

  constructor(
    private readonly parts: StreamsParts,
    private readonly sendQueue: SendQueue,
    private readonly peer: PeerSettings,
  ) {
    this.#resetLimit = new TokenBucket(100, parts.clock.monotonic(), 1_000);
    this.#streamErrorLimit = new TokenBucket(100, parts.clock.monotonic(), 1_000);
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
    if (this.#open.size >= maxStreams) return this.#refuse(id, 'REFUSED_STREAM');
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
    if (!stream) return this.#takeLateData(id, isLast, end - start);
    if (!stream.isRequestOpen) return this.refuseStream(stream, 'STREAM_CLOSED');
    if (!stream.fits(windowBytes)) return this.refuseStream(stream, 'FLOW_CONTROL_ERROR');
    if (!countBody(stream, isLast, end - start)) {
      return this.refuseStream(stream, 'PROTOCOL_ERROR');
    }
    if (isLast) stream.isRequestOpen = false;
    if (!stream.receive(bytes, start, end, windowBytes)) {
      return this.refuseStream(stream, 'ENHANCE_YOUR_CALM');
    }
    if (isLast && !stream.isClosed) stream.receiveEnd();
  }

  takeReset(id: number): void {
    const stream = this.#open.get(id);
    if (!stream) return this.#checkNotIdle(id);
    // CVE-2023-44487 (rapid reset).
    if (!this.#resetLimit.tryTake(1, this.parts.clock))
      throw new ConnectionError('ENHANCE_YOUR_CALM', 'excessive stream resets');
    this.#drop(stream);
  }

  takeWindowUpdate(id: number, byteCount: number): void {
    const stream = this.#open.get(id);
    if (!stream) return this.#takeLateWindowUpdate(id, byteCount);
    if (byteCount === 0) return this.refuseStream(stream, 'PROTOCOL_ERROR');
    stream.sendWindowBytes += byteCount;
    if (stream.sendWindowBytes > maxWindowBytes) {
      return this.refuseStream(stream, 'FLOW_CONTROL_ERROR');
    }
    if (stream.hasMore) this.sendQueue.enqueue(stream);
  }

  /** Applies a change of SETTINGS_INITIAL_WINDOW_SIZE to open streams (RFC 9113, 6.9.2). */
  addWindowToAll(byteCount: number): void {
    for (const stream of this.#open.all()) {
      stream.sendWindowBytes += byteCount;
      if (stream.sendWindowBytes > maxWindowBytes) {
        throw new ConnectionError('FLOW_CONTROL_ERROR', 'flow-control window exceeds 2^31-1');
      }
      if (byteCount > 0 && stream.hasMore) this.sendQueue.enqueue(stream);
    }
  }

  /** A PRIORITY frame in which the stream depends on itself; the stream may be idle. */
  refuseSelfDependency(id: number): void {
    const stream = this.#open.get(id);
    if (stream) this.refuseStream(stream, 'PROTOCOL_ERROR');
    else this.#resetForError(id, 'PROTOCOL_ERROR');
  }

  /** A stream error for a frame of this stream. */
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
    this.sendQueue.enqueue(stream);
  }

  reset(stream: Http2Stream, code: ErrorName): void {
    this.#remember(stream.id, stream.sendWindowBytes);
    this.sendQueue.sendControl(rstStream(stream.id, code));
    this.#drop(stream);
  }

  grant(stream: Http2Stream, byteCount: number): void {
    this.sendQueue.sendControl(windowUpdate(stream.id, byteCount));
  }

  /** The response is complete. */
  end(stream: Http2Stream): void {
    if (stream.isRequestOpen) this.#remember(stream.id, stream.sendWindowBytes, stream);
    this.#drop(stream);
  }

  /** Times out incomplete requests and responses that are not read. */
  checkTimeouts(now: number): void {
    for (const [id, ended] of this.#ended) this.#stopRequest(id, ended);
    for (const stream of this.#open.all()) stream.user?.checkTimeouts(now);
  }

  /** True while a response waits for a client that must keep up with the min read rate. */
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

  #takeLateData(id: number, isLast: boolean, byteCount: number): void {
    const ended = this.#ended.get(id);
    if (ended?.isResetDue && !countBody(ended, isLast, byteCount)) {
      return this.#refuse(id, 'PROTOCOL_ERROR');
    }
    if (ended) return this.#stopRequest(id, ended);
    this.#checkNotIdle(id);
    this.#refuse(id, 'STREAM_CLOSED');
  }

  /** The window of a closed stream still must not overflow (RFC 9113, 6.9.1). */
  #takeLateWindowUpdate(id: number, byteCount: number): void {
    const ended = this.#ended.get(id);
    if (!ended) return this.#checkNotIdle(id);
    ended.sendWindowBytes += byteCount;
    if (ended.sendWindowBytes > maxWindowBytes) this.#refuse(id, 'FLOW_CONTROL_ERROR');
  }

  /** Sends RST_STREAM(NO_ERROR) to a peer that still sends its request (RFC 9113, 8.1). */
  #stopRequest(id: number, ended: EndedStream): void {
    if (!ended.isResetDue) return;
    ended.isResetDue = false;
    this.sendQueue.sendControl(rstStream(id, 'NO_ERROR'));
  }

  #checkNotIdle(id: number): void {
    if (id <= this.lastId && id % 2 === 1) return;
    throw new ConnectionError('PROTOCOL_ERROR', `stream ${id} is not open`);
  }

  #refuse(id: number, code: ErrorName): void {
    this.#resetForError(id, code);
    this.#remember(id);
  }

  #resetForError(id: number, code: ErrorName): void {
    if (!this.#streamErrorLimit.tryTake(1, this.parts.clock))
      throw new ConnectionError('ENHANCE_YOUR_CALM', 'excessive stream errors');
    this.sendQueue.sendControl(rstStream(id, code));
  }

  /** `unfinished`: the stream whose request has not ended. */
  #remember(id: number, sendWindowBytes = 0, unfinished?: Http2Stream): void {
    const isResetDue = unfinished !== undefined;
    this.#ended.set(id, { sendWindowBytes, isResetDue, expectedBytes: unfinished?.expectedBytes });
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

/** Counts DATA; false when the body differs from its content-length (RFC 9113, 8.1.1). */
function countBody(
  stream: { expectedBytes: number | undefined },
  isLast: boolean,
  byteCount: number,
): boolean {
  if (stream.expectedBytes === undefined) return true;
  stream.expectedBytes -= byteCount;
  return stream.expectedBytes >= 0 && (!isLast || stream.expectedBytes === 0);
}

export const maxHeaderBytes = 16 * 1024;
const maxFields = 64;

type StoredName = 'content-type' | 'grpc-timeout' | 'grpc-encoding' | 'x-api-key' | 'authorization';

/** The request headers that the server reads, and whether the header list is valid. */
export class RequestHeaders implements FieldSink {
  ':method': string | undefined = undefined;
  ':scheme': string | undefined = undefined;
  ':path': string | undefined = undefined;
  ':authority': string | undefined = undefined;
  'content-type': string | undefined = undefined;
  'grpc-timeout': string | undefined = undefined;
  'grpc-encoding': string | undefined = undefined;
  'x-api-key': string | undefined = undefined;
  authorization: string | undefined = undefined;
  contentLength: number | undefined = undefined;
  /** The parsed request, cached because identical header blocks share this object. */
  parsed: unknown = undefined;
  #bytes = 0;
  #count = 0;
  #hasRegular = false;
  #hasPseudo = false;
  #isMalformed = false;

  /** Uncompressed size of the header list. */
  get byteCount(): number {
    return this.#bytes;
  }

  get isTooLarge(): boolean {
    return this.#bytes > maxHeaderBytes || this.#count > maxFields;
  }

  /** Whether these are valid request headers. */
  get isRequest(): boolean {
    if (this.#isMalformed || this[':method'] === undefined) return false;
    const { ':path': path, ':scheme': scheme } = this;
    if (this[':method'] === 'CONNECT') return path === undefined && scheme === undefined;
    if (scheme === undefined || path === undefined) return false;
    return path.startsWith('/') || (path === '*' && this[':method'] === 'OPTIONS');
  }

  /** Whether these are valid trailers. */
  get areTrailers(): boolean {
    return !this.#isMalformed && !this.#hasPseudo;
  }

  take(field: Field): void {
    this.#bytes += field.bytes;
    this.#count++;
    // Fields over the limit are still decoded for the dynamic table, but not stored.
    if (this.isTooLarge || this.#isMalformed) return;
    const { role } = field;
    if (role === roles.malformed) this.#isMalformed = true;
    else if (role === roles.pseudo) this.#takePseudo(field);
    else {
      this.#hasRegular = true;
      if (role === roles.length) this.#takeLength(field.value);
      else if (role === roles.stored) this.#store(field);
    }
  }

  #takePseudo({ name, value }: Field): void {
    const pseudo = name as ':method' | ':scheme' | ':path' | ':authority';
    if (this.#hasRegular || this[pseudo] !== undefined) this.#isMalformed = true;
    this.#hasPseudo = true;
    this[pseudo] = value;
  }

  #store({ name, value }: Field): void {
    const stored = name as StoredName;
    const before = this[stored];
    // Repeated fields are joined (RFC 9110, 5.2).
    this[stored] = before === undefined ? value : `${before}, ${value}`;
  }

  #takeLength(value: string): void {
    const length = /^\d{1,15}$/.test(value) ? Number(value) : -1;
    const isOther = this.contentLength !== undefined && this.contentLength !== length;
    if (length === -1 || isOther) this.#isMalformed = true;
    else this.contentLength = length;
  }
}
