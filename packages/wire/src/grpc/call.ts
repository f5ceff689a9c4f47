import type { Clock, Timer } from '@millrace/kit/clock';
import type { ConnectionSlot } from '@millrace/kit/connection-limit';
import { ReadRateCheck } from '../base/read-rate.js';
import type { Http2Stream } from '../http2/stream.js';
import type { StreamUser } from '../http2/stream-user.js';
import { decompressed } from './compression.js';
import {
  Deframer,
  invalid,
  isOneMessage,
  messagePrefixBytes,
  outOfMemory,
  type MessageSink,
} from '../base/deframer.js';
import { explained, type CallAbortReasons } from './abort-reasons.js';
import type { CallHeaders, Method, ServerCall, SingleRequestMethod, Work } from './methods.js';
import { Outbox } from './outbox.js';
import { RequestQueue, type ReceivedMessage, type RequestSource } from './requests.js';
import { faultStatus, ok, type GrpcStatus } from '../base/status.js';

/** A call as its request headers describe it. */
export interface CallRequest {
  readonly headers: CallHeaders;
  readonly method: Method;
  /** The grpc-encoding of compressed messages. */
  readonly encoding: string;
  readonly timeoutMs: number | undefined;
}

// Methods reject what is slightly over their own limit; this limit is for the transport.
export const defaultMaxMessageBytes = 8 * 1024 * 1024;

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
