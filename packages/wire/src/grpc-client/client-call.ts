import {
  blockBytes,
  Deframer,
  type MessageSink,
  grpcCodes,
  type GrpcCode,
} from '../base/messages.js';
import type { HeaderList, Field, FieldSink } from '../http2/hpack.js';
import type {
  Http2Stream,
  StreamHost,
  ByteWriter,
  OutgoingBytes,
  StreamUser,
} from '../http2/stream.js';
import type { Failure } from '../base/socket.js';

interface CallRequest {
  readonly headers: HeaderList;
  /** The request message with its gRPC prefix; undefined: messages follow by `send`. */
  readonly message: Uint8Array | undefined;
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

/** One call: a request message, response messages and a status. */
export class ClientCall implements StreamUser, MessageSink {
  readonly isExemptFromReadRate = true;
  readonly deadline: number;
  readonly #request: CallRequest;
  readonly #observer: CallObserver;
  readonly #deframer: Deframer;
  readonly #bytes = new RequestBytes();
  #hasEnded = false;
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
    stream.outgoing = this.#bytes;
    const { message, headers } = this.#request;
    if (message) this.#bytes.push(message);
    stream.respond(headers);
    if (message || this.#hasEnded) stream.end();
  }

  /** Sends a message, with its gRPC prefix, of a call that was started without one. */
  send(message: Uint8Array): void {
    if (this.isOver || this.#hasEnded) return;
    this.#bytes.push(message);
    this.#stream?.wake();
  }

  /** Bytes of messages that flow control holds back. */
  get unsentBytes(): number {
    return this.#bytes.unsentBytes;
  }

  /** No more messages follow. */
  endRequest(): void {
    this.#hasEnded = true;
    this.#stream?.end();
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
  #messages: Uint8Array[] = [];
  /** Bytes sent of the first message. */
  #at = 0;
  unsentBytes = 0;

  push(message: Uint8Array): void {
    this.#messages.push(message);
    this.unsentBytes += message.length;
  }

  take(writer: ByteWriter, count: number): void {
    this.unsentBytes -= count;
    for (let left = count; left > 0;) {
      const message = this.#messages[0]!;
      const some = Math.min(left, message.length - this.#at);
      writer.bytes(message, this.#at, this.#at + some);
      this.#at += some;
      left -= some;
      if (this.#at < message.length) continue;
      this.#messages.shift();
      this.#at = 0;
    }
  }

  takeSent(): void {
    // Nothing waits for it.
  }

  forget(): void {
    this.#messages = [];
    this.unsentBytes = 0;
  }
}

/** Why a call failed: the status of the server, or of this client if the server sent none. */
export class CallError extends Error {
  override readonly name = 'CallError';

  constructor(
    readonly code: number,
    /** The message of the status. */
    readonly details: string,
    /** An encoded google.rpc.Status, if the server sent one. */
    readonly statusDetails?: Buffer,
    /** Why there is no connection. */
    override readonly cause?: Failure,
  ) {
    super(details);
  }
}

export function callError(code: GrpcCode, details: string): CallError {
  return new CallError(grpcCodes[code], details);
}

/** The error of calls whose connection was not opened, or was lost. */
export function connectionError(cause: Failure): CallError {
  return new CallError(grpcCodes.UNAVAILABLE, cause.message, undefined, cause);
}

/** The error that a response ends with; undefined for status OK. */
function errorOf(headers: ResponseHeaders): CallError | undefined {
  const status = headers['grpc-status'];
  if (status === '0') return undefined;
  if (status === undefined) return httpError(headers[':status']);
  const details = headers['grpc-status-details-bin'];
  return new CallError(
    /^\d{1,2}$/.test(status) ? Number(status) : grpcCodes.UNKNOWN,
    percentDecoded(headers['grpc-message'] ?? ''),
    details === undefined ? undefined : Buffer.from(details, 'base64'),
  );
}

// From the gRPC specification, for responses of proxies.
const codesByHttpStatus: Readonly<Record<string, GrpcCode>> = {
  400: 'INTERNAL',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'UNIMPLEMENTED',
  429: 'UNAVAILABLE',
  502: 'UNAVAILABLE',
  503: 'UNAVAILABLE',
  504: 'UNAVAILABLE',
};

function httpError(status: string | undefined): CallError {
  if (status === undefined || status === '200') {
    return callError('UNKNOWN', 'The response has no grpc-status.');
  }
  const code = codesByHttpStatus[status] ?? 'UNKNOWN';
  return callError(code, `The server answered with HTTP status ${status}.`);
}

/** The error of a stream that the peer reset, by the gRPC specification. */
export function resetError(http2Code: number): CallError {
  const details = `RST_STREAM with error code ${http2Code}`;
  switch (http2Code) {
    case 7:
      return callError('UNAVAILABLE', details);
    case 8:
      return callError('CANCELLED', details);
    case 11:
      return callError('RESOURCE_EXHAUSTED', details);
    case 12:
      return callError('PERMISSION_DENIED', details);
    default:
      return callError('INTERNAL', details);
  }
}

/** Invalid escapes stay as they are. */
function percentDecoded(text: string): string {
  if (!text.includes('%')) return text;
  const bytes = text.replaceAll(/%([0-9A-Fa-f]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

/** Decoded size up to which a header list is accepted. */
export const maxResponseHeaderBytes = 64 * 1024;

/** The response headers or trailers that a client reads. */
export class ResponseHeaders implements FieldSink {
  ':status': string | undefined = undefined;
  'grpc-status': string | undefined = undefined;
  'grpc-message': string | undefined = undefined;
  'grpc-status-details-bin': string | undefined = undefined;
  #bytes = 0;

  get isTooLarge(): boolean {
    return this.#bytes > maxResponseHeaderBytes;
  }

  take({ name, value, bytes }: Field): void {
    this.#bytes += bytes;
    if (this.isTooLarge) return;
    switch (name) {
      case ':status':
      case 'grpc-status':
      case 'grpc-message':
      case 'grpc-status-details-bin':
        this[name] = value;
    }
  }
}

const noHeaders = new ResponseHeaders();
