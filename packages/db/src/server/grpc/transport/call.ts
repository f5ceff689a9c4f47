import type { Clock, Timer } from '@millrace/kit/clock';
import { refuse } from '../../../engine/refusal.js';
import { statusOf } from '../../status.js';
import { grpcStatus } from '../errors.js';
import type { RequestHeaders } from '../http2/request-headers.js';
import type { Http2Stream, StreamUser } from '../http2/stream.js';
import { decompressed } from './compression.js';
import { Deframer, isOneMessage, messageHeadBytes, type MessageSink } from './deframer.js';
import type { Method, SingleMethod } from './methods.js';
import { Outbox } from './outbox.js';
import { RequestQueue } from './requests.js';
import { failed, ok, type GrpcStatus } from './status.js';

/** What a stream asks for, as its headers say. */
export interface CallRequest {
  readonly headers: RequestHeaders;
  readonly method: Method;
  /** How compressed messages are compressed. */
  readonly encoding: string;
  readonly timeoutMs: number | undefined;
}

/** What is done for a caller, and can be given up. */
export interface Work {
  abort(reason: unknown): void;
}

// What is a little too large for a method gets its answer; what is far too large is cut off here.
export const mostMessageBytes = 8 * 1024 * 1024;

// Two minutes, as rounds go.
const mostRequestRounds = 4;

/** One call: reads the request, starts the method, carries the answer. */
export class GrpcCall implements MessageSink, StreamUser {
  readonly headers: RequestHeaders;
  /** Milliseconds since the epoch; undefined: none. */
  readonly deadline: number | undefined;
  /** Hears when the caller leaves or the deadline passes. */
  work: Work | undefined;
  readonly outbox: Outbox;
  readonly #asked: CallRequest;
  /** For a request that comes in pieces. */
  #deframer: Deframer | undefined;
  readonly #timer: Timer | undefined;
  #requests: RequestQueue | undefined;
  #request: Promise<Buffer> | Buffer | undefined;
  #hasStarted = false;
  #isOver = false;
  #rounds = 0;
  #sentBefore = 0;

  constructor(
    private readonly stream: Http2Stream,
    asked: CallRequest,
    readonly peer: string,
    clock: Clock,
  ) {
    const { headers, timeoutMs } = asked;
    this.headers = headers;
    this.outbox = new Outbox(stream);
    this.#asked = asked;
    if (timeoutMs === undefined) return;
    this.deadline = clock.now() + timeoutMs;
    this.#timer = clock.after(timeoutMs, () => this.#expire());
  }

  get waitingBytes(): number {
    const message = Buffer.isBuffer(this.#request) && !this.#hasStarted ? this.#request.length : 0;
    return message + (this.#deframer?.waitingBytes ?? 0);
  }

  /** For a method of many messages, which begins before the first of them. */
  begin(): void {
    const { method } = this.#asked;
    if (method.takes === 'one') return;
    this.#hasStarted = true;
    this.#requests = new RequestQueue(this.stream);
    method.start(this, this.#requests);
  }

  send(message: Uint8Array): void {
    this.outbox.push(message);
  }

  /**
   * One or several messages with their prefixes of gRPC, sent as they are. They may be another
   * call's, too: nobody may change them any more.
   */
  sendFramed(bytes: Uint8Array): void {
    this.outbox.pushFramed(bytes);
  }

  /** The one message of a unary call, and its good end. */
  answer(message: Uint8Array): void {
    if (this.#isOver) return;
    this.#settle();
    this.outbox.answer(message);
  }

  end(status: GrpcStatus = ok): void {
    if (this.#isOver) return;
    this.#settle();
    this.outbox.end(status);
  }

  takeBytes(chunk: Buffer, start: number, end: number): void {
    if (this.#isOver) return;
    if (!this.#deframer && isOneMessage(chunk, start, end)) {
      const bytes = Buffer.allocUnsafe(end - start - messageHeadBytes);
      chunk.copy(bytes, 0, start + messageHeadBytes, end);
      return this.takeMessage(bytes, chunk[start] === 1);
    }
    this.#deframer ??= new Deframer(this, mostMessageBytes);
    const problem = this.#deframer.push(chunk, start, end);
    if (problem) this.#refuse(problem);
  }

  takeMessage(bytes: Buffer, isCompressed: boolean): void {
    if (this.#isOver) return;
    const message = isCompressed ? this.#decompressed(bytes) : bytes;
    if (this.#requests) this.#requests.push(Promise.resolve(message));
    else if (this.#request) this.#refuse(failed('UNIMPLEMENTED', 'Send one message, not several.'));
    else this.#request = message;
  }

  /** The caller has said all. */
  takeEnd(): void {
    if (this.#isOver) return;
    if (this.#deframer?.isMidway) {
      return this.#refuse(failed('INTERNAL', 'The request ends in the middle of a message.'));
    }
    if (this.#requests) return this.#requests.end();
    if (this.#request) this.#start(this.#request);
    else this.end(failed('UNIMPLEMENTED', 'Send one message; there was none.'));
  }

  /** The stream is closed: by us when the call is over, else by the caller or the network. */
  takeClose(): void {
    this.outbox.forget();
    if (this.#isOver) return;
    this.#settle();
    this.work?.abort(refuse('CANCELLED', 'The caller gave the call up.'));
  }

  /** Called now and then: gives up callers who neither finish their request nor take the answer. */
  checkPace(): void {
    this.#rounds++;
    if (this.#isOver) {
      const { sentBytes } = this.outbox;
      if (this.#rounds > 1 && sentBytes === this.#sentBefore) this.outbox.reset();
      this.#sentBefore = sentBytes;
    } else if (!this.#hasStarted && this.#rounds >= mostRequestRounds) {
      this.end(failed('DEADLINE_EXCEEDED', 'The request did not arrive in time.'));
    }
  }

  #start(request: Promise<Buffer> | Buffer): void {
    this.#hasStarted = true;
    const method = this.#asked.method as SingleMethod;
    if (Buffer.isBuffer(request)) return method.start(this, request);
    request.then(
      (bytes) => this.#isOver || method.start(this, bytes),
      () => undefined,
    );
  }

  #decompressed(bytes: Buffer): Promise<Buffer> {
    const message = decompressed(bytes, this.#asked.encoding, mostMessageBytes);
    message.catch((status: GrpcStatus) => this.#refuse(status));
    return message;
  }

  #expire(): void {
    if (this.#isOver) return;
    const refusal = refuse('DEADLINE_EXCEEDED', 'The deadline of the call passed.');
    this.#refuse(grpcStatus(statusOf(refusal)), refusal);
  }

  /** Ends the call, whatever is under way. */
  #refuse(status: GrpcStatus, reason: unknown = new Error(status.message)): void {
    if (this.#isOver) return;
    this.outbox.drop();
    this.end(status);
    this.work?.abort(reason);
  }

  #settle(): void {
    this.#isOver = true;
    this.#rounds = 0;
    this.#timer?.cancel();
    this.#requests?.end();
  }
}
