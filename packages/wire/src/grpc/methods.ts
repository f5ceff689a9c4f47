import type { CallHeaders } from './headers.js';
import type { RequestQueue } from './requests.js';
import type { GrpcStatus } from './status.js';

/** What is done for a caller, and can be given up. */
export interface Work {
  abort(reason: unknown): void;
}

/** A call as its method sees it. */
export interface ServerCall {
  readonly headers: CallHeaders;
  readonly peer: string;
  /** Milliseconds since the epoch; undefined: none. */
  readonly deadline: number | undefined;
  /** Told when the caller leaves or the deadline passes. */
  work: Work | undefined;
  /** Waiting for the caller to take it. */
  readonly unsentBytes: number;
  /** Told of every write that is done. */
  onSent: (() => void) | undefined;
  /** The peer reads too little for more responses to be built; `whenDrained` tells when. */
  readonly isCongested: boolean;
  whenDrained(run: () => void): void;
  /** True while streams should keep little unsent, because memory is scarce. */
  readonly isMemoryScarce: boolean;
  /** Headers at once, for a call that may have nothing to send for long. */
  sendHeaders(): void;
  send(message: Uint8Array): void;
  /** One or several messages with their prefixes; they may be shared, so nobody may change them. */
  sendFramed(bytes: Uint8Array): void;
  /** The one message of a unary call, and its good end. */
  answer(message: Uint8Array): void;
  end(status?: GrpcStatus): void;
}

interface MethodOptions {
  /** Called when the headers have arrived, before any of the body is kept. May end the call. */
  accept?(call: ServerCall): void;
  /** Limit of one message, compressed or not; the server's own when absent. */
  readonly maxMessageBytes?: number;
  /** Its reader may pause for minutes, as that of a watch. */
  readonly isExemptFromReadRate?: boolean;
}

/** A method to which a caller sends one message; what it answers is up to it. */
export interface SingleMethod extends MethodOptions {
  readonly takes: 'one';
  /** Must not throw: whatever goes wrong ends the call. */
  start(call: ServerCall, request: Buffer): void;
}

/** A method to which a caller sends messages as long as it likes. */
export interface StreamedMethod extends MethodOptions {
  readonly takes: 'many';
  /** Must not throw: whatever goes wrong ends the call. */
  start(call: ServerCall, requests: RequestQueue): void;
}

export type Method = SingleMethod | StreamedMethod;

/** By path, `/package.Service/Method`. */
export type Methods = ReadonlyMap<string, Method>;
