import type { Clock, Timer } from '@millrace/kit/clock';
import type { ConnectionSlot } from '@millrace/kit/connection-limit';
import { ReadRateCheck } from '../base/socket.js';
import type { Http2Stream, StreamUser, ByteWriter, OutgoingBytes } from '../http2/stream.js';
import {
  decompressed,
  explained,
  type CallAbortReasons,
  type CallHeaders,
  type Method,
  type ServerCall,
  type SingleRequestMethod,
  type Work,
  RequestQueue,
  type ReceivedMessage,
  type RequestSource,
  acceptedEncodings,
} from './methods.js';
import {
  Deframer,
  invalid,
  isOneMessage,
  messagePrefixBytes,
  outOfMemory,
  type MessageSink,
  faultStatus,
  ok,
  type GrpcStatus,
  trailersOf,
} from '../base/messages.js';
import { HeaderList } from '../http2/hpack.js';

/** A call as its request headers describe it. */
export interface CallRequest {
  readonly headers: CallHeaders;
  readonly method: Method;
  /** The grpc-encoding of compressed messages. */
  readonly encoding: string;
  readonly timeoutMs: number | undefined;
}

// Methods reject what is slightly over their own limit; this limit is for the transport.
const defaultMaxMessageBytes = 8 * 1024 * 1024;

const maxRequestMs = 120_000;
// Approximate memory of a call itself.
const callBytes = 1024;

/** One call: reads the request, starts the method, sends the response. */
export class GrpcCall implements ServerCall, MessageSink, StreamUser, RequestSource {
  readonly headers: CallHeaders;
  readonly deadline: number | undefined;
  work: Work | undefined;
  readonly outbox: Outbox;
  readonly #callRequest: CallRequest;
  readonly #maxMessageBytes: number;
  /** For a request that arrives in several DATA frames. */
  #deframer: Deframer | undefined;
  readonly #timer: Timer | undefined;
  readonly #openedAt: number;
  #requests: RequestQueue | undefined;
  #request: ReceivedMessage | undefined;
  #hasStarted = false;
  #isOver = false;
  /** Counted against the memory of the connection until the call is over. */
  #reservedBytes = 0;
  #readerCheck: ReadRateCheck | undefined;

  constructor(
    private readonly stream: Http2Stream,
    callRequest: CallRequest,
    readonly peer: string,
    clock: Clock,
    private readonly abortReasons: CallAbortReasons,
    private slot?: ConnectionSlot,
  ) {
    const { headers, method, timeoutMs } = callRequest;
    this.headers = headers;
    this.outbox = new Outbox(stream);
    this.#callRequest = callRequest;
    this.#maxMessageBytes = method.maxMessageBytes ?? defaultMaxMessageBytes;
    this.#openedAt = clock.monotonic();
    if (timeoutMs === undefined) return;
    this.deadline = clock.now() + timeoutMs;
    this.#timer = clock.after(timeoutMs, () => this.#expire());
  }

  get unsentBytes(): number {
    return this.outbox.unsentBytes;
  }

  get onSent(): (() => void) | undefined {
    return this.outbox.onSent;
  }

  set onSent(onSent: (() => void) | undefined) {
    this.outbox.onSent = onSent;
  }

  get isCongested(): boolean {
    return !this.stream.isClosed && this.stream.memory.isCongested;
  }

  get isMemoryScarce(): boolean {
    return this.stream.memory.isProcessPressed || this.stream.memory.isCongested;
  }

  get isExemptFromReadRate(): boolean {
    return this.#callRequest.method.isExemptFromReadRate === true;
  }

  whenDrained(run: () => void): void {
    this.stream.memory.whenDrained(run);
  }

  /** The headers have arrived: identifies the caller, and starts a request-streaming method. */
  begin(): void {
    if (!this.tryReserve(callBytes + this.headers.byteCount)) return this.#refuse(outOfMemory);
    const { method } = this.#callRequest;
    this.slot?.enter();
    method.accept?.(this);
    // A call of a public method, such as a health check, says nothing about its caller.
    if (!this.#isOver && method.accept && this.slot?.authenticate() === false) {
      this.#refuse(this.abortReasons.noConnection());
    }
    if (this.stream.isClosed) this.#leaveConnection();
    if (this.#isOver || method.takes === 'one') return;
    this.#hasStarted = true;
    this.#requests = new RequestQueue(this);
    method.start(this, this.#requests);
  }

  sendHeaders(): void {
    this.outbox.sendHeaders();
  }

  send(message: Uint8Array): void {
    this.outbox.push(message);
  }

  sendFramed(bytes: Uint8Array): void {
    this.outbox.pushFramed(bytes);
  }

  respond(message: Uint8Array): void {
    if (this.#isOver) return;
    this.#settle();
    this.outbox.respond(message);
  }

  end(status: GrpcStatus = ok): void {
    if (this.#isOver) return;
    this.#settle();
    this.outbox.end(explained(status, this.abortReasons));
  }

  pause(): void {
    this.stream.pause();
  }

  resume(): void {
    this.stream.resume();
  }

  takeBytes(chunk: Buffer, start: number, end: number): void {
    if (this.#isOver) return;
    if (!this.#deframer && this.#isWhole(chunk, start, end)) {
      const size = end - start - messagePrefixBytes;
      if (!this.tryReserve(size)) return this.#refuse(outOfMemory);
      const bytes = Buffer.allocUnsafe(size);
      chunk.copy(bytes, 0, start + messagePrefixBytes, end);
      return this.takeMessage(bytes, chunk[start] === 1);
    }
    this.#deframer ??= new Deframer(this, this.#maxMessageBytes);
    const problem = this.#deframer.push(chunk, start, end);
    if (problem) this.#refuse(problem);
  }

  takeMessage(bytes: Buffer, isCompressed: boolean): void {
    if (this.#isOver) return;
    const message = { bytes, isCompressed };
    if (this.#requests) this.#requests.push(message);
    else if (this.#request)
      this.#refuse(
        faultStatus('UNIMPLEMENTED', 'Send one message, not several.', 'invalid_request'),
      );
    else this.#request = message;
  }

  tryReserve(bytes: number): boolean {
    if (this.#isOver || !this.stream.memory.tryReserve(bytes)) return false;
    this.#reservedBytes += bytes;
    return true;
  }

  release(bytes: number): void {
    if (this.#isOver) return;
    this.#reservedBytes -= bytes;
    this.stream.memory.release(bytes);
  }

  /** The client has half-closed the stream. */
  takeEnd(): void {
    if (this.#isOver) return;
    if (this.#deframer?.hasPartialMessage) {
      return this.#refuse(invalid('The request ends in the middle of a message.'));
    }
    if (this.#requests) return this.#requests.end();
    if (this.#request) this.#start(this.#request);
    else
      this.end(
        faultStatus('UNIMPLEMENTED', 'Send one message; there was none.', 'invalid_request'),
      );
  }

  /** The stream is closed: by us when the call is over, otherwise by the client or the network. */
  takeClose(): void {
    this.#leaveConnection();
    if (this.#isOver) return;
    this.#settle();
    this.work?.abort(this.abortReasons.cancelled());
  }

  /** Ends calls whose client neither finishes its request nor reads the response. */
  checkTimeouts(now: number): void {
    if (!this.#isOver && !this.#hasStarted && now - this.#openedAt >= maxRequestMs) {
      return this.end(
        faultStatus('DEADLINE_EXCEEDED', 'The request did not arrive in time.', 'too_late'),
      );
    }
    if (this.isExemptFromReadRate) return;
    const isWaiting = this.unsentBytes > 0 && this.stream.isWindowExhausted;
    if (!isWaiting && !this.#readerCheck) return;
    this.#readerCheck ??= new ReadRateCheck();
    const isTooSlow = this.#readerCheck.isTooSlow(now, isWaiting, this.outbox.sentBytes);
    if (isTooSlow) this.stream.reset('ENHANCE_YOUR_CALM');
  }

  async open({ bytes, isCompressed }: ReceivedMessage): Promise<Buffer | undefined> {
    if (!isCompressed) return bytes;
    try {
      return await decompressed(bytes, {
        encoding: this.#callRequest.encoding,
        maxBytes: this.#maxMessageBytes,
        tryReserve: (count) => this.tryReserve(count),
      });
    } catch (status) {
      this.#refuse(status as GrpcStatus);
      return undefined;
    }
  }

  #isWhole(chunk: Buffer, start: number, end: number): boolean {
    return end - start <= this.#maxMessageBytes && isOneMessage(chunk, start, end);
  }

  #start(request: ReceivedMessage): void {
    this.#hasStarted = true;
    this.#request = undefined;
    const method = this.#callRequest.method as SingleRequestMethod;
    if (!request.isCompressed) return method.start(this, request.bytes);
    const opened = this.open(request);
    void opened.then((bytes) => bytes && !this.#isOver && method.start(this, bytes));
  }

  #expire(): void {
    if (this.#isOver) return;
    const { status, reason } = this.abortReasons.expired();
    this.#refuse(status, reason);
  }

  /** Ends the call and drops responses that are not sent yet. */
  #refuse(status: GrpcStatus, reason: unknown = new Error(status.message)): void {
    if (this.#isOver) return;
    this.outbox.drop();
    this.end(status);
    this.work?.abort(reason);
  }

  #leaveConnection(): void {
    this.slot?.leave();
    this.slot = undefined;
  }

  #settle(): void {
    this.stream.memory.release(this.#reservedBytes);
    this.#isOver = true;
    this.#request = undefined;
    this.#deframer?.discard();
    this.#deframer = undefined;
    this.#timer?.cancel();
    this.#requests?.end();
  }
}

const headers = { ':status': '200', 'content-type': 'application/grpc+proto' };
const responseHeaders = new HeaderList(headers);
const refusalHeaders = { ...headers, 'grpc-accept-encoding': acceptedEncodings };
const okTrailers = new HeaderList(trailersOf(ok));

const prefixBytes = 5;
// Sent pieces are removed in batches of this size.
const maxSentPieces = 64;

const refusals = new WeakMap<GrpcStatus, HeaderList>();

/** The only headers of a response without messages. Encoded once for a status that is shared. */
function refusalOf(status: GrpcStatus): HeaderList {
  let list = refusals.get(status);
  if (!list) {
    list = new HeaderList({ ...refusalHeaders, ...trailersOf(status) });
    refusals.set(status, list);
  }
  return list;
}

/** Queue of response messages of one call, waiting for flow control. */
export class Outbox implements OutgoingBytes {
  readonly #stream: Http2Stream;
  #pieces: Uint8Array[] = [];
  /** Length of the message prefix written before each piece. */
  #heads: number[] = [];
  /** Index of the first piece that is not fully sent. */
  #first = 0;
  /** Bytes sent of the first piece, including its prefix. */
  #at = 0;
  #hasStatus = false;
  #takenBytes = 0;
  /** Bytes queued and not yet sent. */
  unsentBytes = 0;
  /** Bytes that were written to the socket. */
  sentBytes = 0;
  /** Called after every write. */
  onSent: (() => void) | undefined;

  constructor(stream: Http2Stream) {
    this.#stream = stream;
    stream.outgoing = this;
  }

  sendHeaders(): void {
    this.#stream.respond(responseHeaders);
  }

  /** Sends the response of a unary call and status OK. */
  respond(message: Uint8Array): void {
    this.push(message);
    this.end(ok);
  }

  push(message: Uint8Array): void {
    this.#add(message, prefixBytes);
  }

  /** Messages that have their prefixes already. */
  pushFramed(bytes: Uint8Array): void {
    if (bytes.length > 0) this.#add(bytes, 0);
  }

  /** Ends the call after the queued messages. */
  end(status: GrpcStatus): void {
    if (this.#hasStatus) return;
    this.#hasStatus = true;
    if (this.#stream.hasHeaders) {
      return this.#stream.end(status.code === 0 ? okTrailers : new HeaderList(trailersOf(status)));
    }
    this.#stream.respond(refusalOf(status));
    this.#stream.end();
  }

  /** Drops queued messages. A message that is partly sent must be completed. */
  drop(): void {
    const stored = this.#at > 0 ? this.#first + 1 : this.#first;
    this.unsentBytes -= this.#removeFrom(stored);
    this.#pieces.length = this.#heads.length = stored;
  }

  /** Drops everything: the stream is closed. */
  forget(): void {
    this.#removeFrom(this.#first);
    this.#pieces = [];
    this.#heads = [];
    this.#first = this.#at = this.unsentBytes = 0;
    this.#hasStatus = true;
  }

  take(writer: ByteWriter, count: number): void {
    this.unsentBytes -= count;
    this.#takenBytes += count;
    for (let left = count; left > 0;) {
      const piece = this.#pieces[this.#first]!;
      const head = this.#heads[this.#first]!;
      if (this.#at < head) left -= this.#takeHead(writer, piece.length, left);
      const start = this.#at - head;
      const some = Math.min(left, piece.length - start);
      if (some > 0) {
        writer.bytes(piece, start, start + some);
        this.#at += some;
        left -= some;
      }
      if (this.#at === head + piece.length) this.#next();
    }
  }

  takeSent(): void {
    this.sentBytes += this.#takenBytes;
    this.#takenBytes = 0;
    this.onSent?.();
  }

  #add(bytes: Uint8Array, head: number): void {
    if (this.#hasStatus || this.#stream.isClosed) return;
    this.#pieces.push(bytes);
    this.#heads.push(head);
    this.unsentBytes += head + bytes.length;
    this.#stream.memory.addUnsent(head + bytes.length);
    this.#stream.respond(responseHeaders);
    this.#stream.wake();
  }

  /** Releases the memory of pieces from `first` on. Returns the number of bytes. */
  #removeFrom(first: number): number {
    let bytes = 0;
    for (let i = first; i < this.#pieces.length; i++) {
      bytes += this.#heads[i]! + this.#pieces[i]!.length;
    }
    if (bytes > 0) this.#stream.memory.removeUnsent(bytes);
    return bytes;
  }

  /** Returns the number of prefix bytes written. */
  #takeHead(writer: ByteWriter, length: number, maxBytes: number): number {
    const some = Math.min(prefixBytes - this.#at, maxBytes);
    if (some === prefixBytes) writer.messagePrefix(length);
    else {
      const head = Buffer.alloc(prefixBytes);
      head.writeUInt32BE(length, 1);
      writer.bytes(head, this.#at, this.#at + some);
    }
    this.#at += some;
    return some;
  }

  #next(): void {
    this.#stream.memory.removeUnsent(this.#at);
    this.#at = 0;
    this.#first++;
    if (this.#first < this.#pieces.length && this.#first < maxSentPieces) return;
    if (this.#first === this.#pieces.length) {
      this.#pieces = [];
      this.#heads = [];
    } else {
      this.#pieces.splice(0, this.#first);
      this.#heads.splice(0, this.#first);
    }
    this.#first = 0;
  }
}
