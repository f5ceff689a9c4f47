import type { RequestQueue } from './requests.js';
import type { GrpcStatus } from '../base/status.js';

/** The request headers that the server reads. */
export interface CallHeaders {
  readonly ':method': string | undefined;
  readonly ':path': string | undefined;
  readonly 'content-type': string | undefined;
  readonly 'grpc-timeout': string | undefined;
  readonly 'grpc-encoding': string | undefined;
  readonly 'x-api-key': string | undefined;
  readonly authorization: string | undefined;
  /** Uncompressed size of the header list. */
  readonly byteCount: number;
  /** The parsed request, cached because identical header blocks share this object. */
  parsed: unknown;
}

/** The work of a call, which can be aborted. */
export interface Work {
  abort(reason: unknown): void;
}

/** The interface of a call for its method. */
export interface ServerCall {
  readonly headers: CallHeaders;
  readonly peer: string;
  /** Milliseconds since the epoch; undefined: none. */
  readonly deadline: number | undefined;
  /** Aborted when the client cancels or the deadline passes. */
  work: Work | undefined;
  /** Bytes queued and not yet sent. */
  readonly unsentBytes: number;
  /** Called after every write. */
  onSent: (() => void) | undefined;
  /** True while the peer reads too slowly to build more responses; see `whenDrained`. */
  readonly isCongested: boolean;
  whenDrained(run: () => void): void;
  /** True while memory is scarce and streams should queue little. */
  readonly isMemoryScarce: boolean;
  /** Sends the headers now, for a call whose first message may come late. */
  sendHeaders(): void;
  send(message: Uint8Array): void;
  /** One or more length-prefixed messages. They may be shared: do not modify them. */
  sendFramed(bytes: Uint8Array): void;
  /** Sends the response of a unary call and status OK. */
  respond(message: Uint8Array): void;
  end(status?: GrpcStatus): void;
}

interface MethodOptions {
  /** Called when the headers have arrived, before any body is buffered. May end the call. */
  accept?(call: ServerCall): void;
  /** Limit of one message, before and after decompression; the server's default when absent. */
  readonly maxMessageBytes?: number;
  /** True for watch streams, whose client may stop reading for minutes. */
  readonly isExemptFromReadRate?: boolean;
}

/** Takes one request message: a unary or server-streaming method. */
export interface SingleRequestMethod extends MethodOptions {
  readonly takes: 'one';
  /** Must not throw: errors end the call with a status. */
  start(call: ServerCall, request: Buffer): void;
}

/** Takes a stream of request messages: a client-streaming or bidirectional method. */
export interface RequestStreamMethod extends MethodOptions {
  readonly takes: 'many';
  /** Must not throw: errors end the call with a status. */
  start(call: ServerCall, requests: RequestQueue): void;
}

export type Method = SingleRequestMethod | RequestStreamMethod;

/** By path, `/package.Service/Method`. */
export type Methods = ReadonlyMap<string, Method>;
