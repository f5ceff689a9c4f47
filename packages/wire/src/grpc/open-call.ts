import type { Clock } from '@millrace/kit/clock';
import type { ConnectionLimit, ConnectionSlot } from '@millrace/kit/connection-limit';
import type { PeerMemory } from '@millrace/kit/peer-memory';
import type { Http2Stream } from '../http2/stream.js';
import { GrpcCall, type CallRequest } from './call.js';
import { defaultAbortReasons, type CallAbortReasons } from './abort-reasons.js';
import type { CallHeaders, Methods } from './methods.js';
import { parseRequest } from './parse-request.js';

export interface GrpcServerOptions {
  readonly clock: Clock;
  readonly methods: Methods;
  /** Memory held for all peers of the process. */
  readonly memory: PeerMemory;
  readonly abortReasons?: CallAbortReasons;
  /** Limits the open connections; without it there is no limit. */
  readonly connections?: ConnectionLimit;
}

/** Starts the call of a stream; undefined when it was rejected. */
export function openCall(
  stream: Http2Stream,
  headers: CallHeaders,
  peer: string,
  options: GrpcServerOptions,
  slot?: ConnectionSlot,
): GrpcCall | undefined {
  const { clock, methods, abortReasons = defaultAbortReasons } = options;
  const known = headers.parsed as CallRequest | undefined;
  const request = known ?? parseRequest(stream, headers, methods, abortReasons);
  if (!request) return undefined;
  headers.parsed = request;
  const call = new GrpcCall(stream, request, peer, clock, abortReasons, slot);
  call.begin();
  return call;
}
