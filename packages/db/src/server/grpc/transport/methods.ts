import type { GrpcCall } from './call.js';
import type { RequestQueue } from './requests.js';

/** A method to which a caller sends one message; what it answers is up to it. */
export interface SingleMethod {
  readonly takes: 'one';
  /** Must not throw: whatever goes wrong ends the call. */
  start(call: GrpcCall, request: Buffer): void;
}

/** A method to which a caller sends messages as long as it likes. */
export interface StreamedMethod {
  readonly takes: 'many';
  /** Must not throw: whatever goes wrong ends the call. */
  start(call: GrpcCall, requests: RequestQueue): void;
}

export type Method = SingleMethod | StreamedMethod;

/** By path, `/package.Service/Method`. */
export type Methods = ReadonlyMap<string, Method>;
