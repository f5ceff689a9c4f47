import { blockBytes, Deframer, type MessageSink } from '../base/deframer.js';
import type { HeaderList } from '../http2/header-block.js';
import type { Http2Stream, StreamHost } from '../http2/stream.js';
import type { ByteWriter, OutgoingBytes, StreamUser } from '../http2/stream-user.js';
import { CallError, callError, errorOf } from './call-error.js';
import { ResponseHeaders } from './response-headers.js';

export interface CallRequest {
  readonly headers: HeaderList;
  /** The request message with its gRPC prefix. */
  readonly message: Uint8Array;
  /** Time by the clock at which the call fails; Infinity: never. */
  readonly deadline: number;
  readonly maxMessageBytes: number;
}

/** Receives the result of a call. */
export interface CallObserver {
  takeMessage(message: Buffer): void;
  /** The call is over; undefined: with status OK. */
  takeEnd(error: CallError | undefined): void;
}

/** The interface of the connection for its calls. */
export interface CallHost extends StreamHost {
  /** The response is complete. */
  complete(stream: Http2Stream): void;
}

const noHeaders = new ResponseHeaders();

/** One call: a request message, response messages and a status. */
export class ClientCall implements StreamUser, MessageSink {
  readonly isExemptFromReadRate = true;
  readonly deadline: number;
  readonly #request: CallRequest;
  readonly #observer: CallObserver;
  readonly #deframer: Deframer;
  #stream: Http2Stream | undefined;
  #host: CallHost | undefined;
  #headers: ResponseHeaders | undefined;
  #trailers: ResponseHeaders | undefined;
  isOver = false;
  /** Called once, when the call is over. */
  onOver: (() => void) | undefined;

  constructor(request: CallRequest, observer: CallObserver) {
    this.#request = request;
    this.deadline = request.deadline;
    this.#observer = observer;
    // A response of up to a block is copied once: its server is trusted with that much memory.
    this.#deframer = new Deframer(this, request.maxMessageBytes, blockBytes);
  }

  start(stream: Http2Stream, host: CallHost): void {
    this.#stream = stream;
    this.#host = host;
    stream.user = this;
    stream.outgoing = new RequestBytes(this.#request.message);
    stream.respond(this.#request.headers);
    stream.end();
  }

  /** Stops reading until `resume`; the peer is held back by flow control. */
  pause(): void {
    this.#stream?.pause();
  }

  resume(): void {
    this.#stream?.resume();
  }

  /** Ends the call with an error, and the stream if it is open. */
  fail(error: CallError): void {
    if (this.isOver) return;
    this.#finish(error);
    this.#stream?.reset('CANCEL');
  }

  /** False when the header list is not valid here. */
  takeHeaders(headers: ResponseHeaders, isLast: boolean): boolean {
    if (headers.isTooLarge) return false;
    if (isLast) this.#trailers = headers;
    // Informational responses come before the headers.
    else if (headers[':status']?.startsWith('1')) return true;
    else if (this.#headers) return false;
    else this.#headers = headers;
    return true;
  }

  takeBytes(bytes: Buffer, start: number, end: number): void {
    if (this.isOver) return;
    if (this.#headers?.[':status'] !== '200') return;
    const problem = this.#deframer.push(bytes, start, end);
    if (problem) this.fail(new CallError(problem.code, problem.message));
  }

  takeMessage(message: Buffer, isCompressed: boolean): void {
    if (this.isOver) return;
    if (isCompressed) {
      return this.fail(callError('INTERNAL', 'The server compressed a message unasked.'));
    }
    this.#observer.takeMessage(message);
  }

  /** What a server may send is limited by the message size and the flow-control windows. */
  tryReserve(): boolean {
    return true;
  }

  takeEnd(): void {
    if (this.isOver) return;
    this.#finish(this.#endError());
    this.#host!.complete(this.#stream!);
  }

  takeClose(): void {
    if (!this.isOver) this.#finish(callError('UNAVAILABLE', 'The connection was closed.'));
  }

  checkTimeouts(): void {
    // Deadlines are checked for all calls of the channel.
  }

  #endError(): CallError | undefined {
    const headers = this.#headers ?? this.#trailers ?? noHeaders;
    if (headers[':status'] !== '200') return errorOf(headers);
    const error = errorOf(this.#trailers ?? noHeaders);
    if (error || !this.#deframer.hasPartialMessage) return error;
    return callError('INTERNAL', 'The response ends inside a message.');
  }

  #finish(error: CallError | undefined): void {
    this.isOver = true;
    this.onOver?.();
    this.#observer.takeEnd(error);
  }
}

/** The bytes of a request that wait for flow control. */
class RequestBytes implements OutgoingBytes {
  #at = 0;

  constructor(private readonly bytes: Uint8Array) {}

  get unsentBytes(): number {
    return this.bytes.length - this.#at;
  }

  take(writer: ByteWriter, count: number): void {
    writer.bytes(this.bytes, this.#at, this.#at + count);
    this.#at += count;
  }

  takeSent(): void {
    // Nothing waits for it: a request is one message.
  }

  forget(): void {
    this.#at = this.bytes.length;
  }
}
