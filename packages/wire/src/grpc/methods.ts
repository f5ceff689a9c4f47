import {
  type GrpcStatus,
  errorStatus,
  faultStatus,
  type GrpcCode,
  type TransportFault,
  invalid,
  outOfMemory,
  tooLarge,
} from '../base/messages.js';
import { connectionsExceeded } from '@millrace/kit/connection-limit';
import type { Transform } from 'node:stream';
import { createGunzip, createInflate } from 'node:zlib';

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

/** Why the work of a call is aborted. */
class CallAborted extends Error {
  override readonly name = 'CallEnded';

  constructor(
    readonly code: GrpcCode,
    message: string,
  ) {
    super(message);
  }
}

/** Reasons for ending a call that its method did not end. */
export interface CallAbortReasons {
  /** Abort reason when the client cancels or disconnects. */
  cancelled(): unknown;
  /** Status sent when the deadline passes, and the abort reason. */
  expired(): { readonly status: GrpcStatus; readonly reason: unknown };
  /** Status of a call for whose connection there is no room. */
  noConnection(): GrpcStatus;
  /** Adds the error details of the service to a status of the transport. */
  explain?(status: GrpcStatus, fault: TransportFault): GrpcStatus;
}

/** A status as it is sent. */
export function explained(status: GrpcStatus, { explain }: CallAbortReasons): GrpcStatus {
  return status.fault && explain ? explain(status, status.fault) : status;
}

export const defaultAbortReasons: CallAbortReasons = {
  cancelled: () => new CallAborted('CANCELLED', 'The caller cancelled the call.'),
  expired: () => {
    const text = 'The deadline of the call passed.';
    return {
      status: faultStatus('DEADLINE_EXCEEDED', text, 'too_late'),
      reason: new CallAborted('DEADLINE_EXCEEDED', text),
    };
  },
  noConnection: () => errorStatus('UNAVAILABLE', connectionsExceeded),
};

/** A message as it was received. */
export interface ReceivedMessage {
  readonly bytes: Buffer;
  readonly isCompressed: boolean;
}

/** Source of request messages. */
export interface RequestSource {
  pause(): void;
  resume(): void;
  /** Decompresses a message if needed; undefined when that failed and ended the call. */
  open(message: ReceivedMessage): Promise<Buffer | undefined>;
  /** Releases the memory of processed messages. */
  release(bytes: number): void;
}

/** Request messages of a client stream, read one at a time with backpressure. */
export class RequestQueue {
  readonly #messages: ReceivedMessage[] = [];
  #hasEnded = false;
  /** Memory of the message returned last. */
  #currentBytes = 0;
  #wake: (() => void) | undefined;

  constructor(private readonly source: RequestSource) {}

  push(message: ReceivedMessage): void {
    this.#messages.push(message);
    this.source.pause();
    this.#wake?.();
  }

  end(): void {
    this.#hasEnded = true;
    this.#wake?.();
    this.source.resume();
  }

  /** Undefined at the end of the stream or of the call. */
  async next(): Promise<Buffer | undefined> {
    this.source.release(this.#currentBytes);
    this.#currentBytes = 0;
    if (this.#messages.length === 0 && !this.#hasEnded) {
      this.source.resume();
      await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#wake = undefined;
    }
    const message = this.#messages.shift();
    if (!message) return undefined;
    const opened = await this.source.open(message);
    this.#currentBytes = message.bytes.length + (message.isCompressed ? (opened?.length ?? 0) : 0);
    return opened;
  }
}

const encodings: ReadonlyMap<string, (() => Transform) | undefined> = new Map([
  ['identity', undefined],
  ['deflate', createInflate],
  ['gzip', createGunzip],
]);

export const acceptedEncodings = [...encodings.keys()].join(',');

export function isEncoding(name: string): boolean {
  return encodings.has(name);
}

interface DecompressOptions {
  readonly encoding: string;
  readonly maxBytes: number;
  /** Reserves memory for the decompressed bytes; the caller releases it. */
  tryReserve(bytes: number): boolean;
}

/** Decompresses a message; rejects with the status that ends the call. */
export function decompressed(bytes: Buffer, options: DecompressOptions): Promise<Buffer> {
  const { encoding, maxBytes, tryReserve } = options;
  const create = encodings.get(encoding);
  return new Promise((resolve, reject: (status: GrpcStatus) => void) => {
    if (!create) {
      return reject(invalid('A message is compressed, but the call has no grpc-encoding.'));
    }
    const stream = create();
    const chunks: Buffer[] = [];
    let length = 0;
    const refuse = (status: GrpcStatus) => {
      stream.destroy();
      chunks.length = 0;
      reject(status);
    };
    stream.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > maxBytes) {
        const text = `A decompressed message exceeds the limit of ${maxBytes} bytes.`;
        return refuse(tooLarge(text, maxBytes));
      }
      if (!tryReserve(chunk.length)) return refuse(outOfMemory);
      chunks.push(chunk);
    });
    stream.on('end', () => resolve(Buffer.concat(chunks, length)));
    stream.on('error', (error) =>
      refuse(invalid(`A message is not valid ${encoding}: ${error.message}.`)),
    );
    stream.end(bytes);
  });
}
