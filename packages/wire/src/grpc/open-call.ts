import type { Clock } from '@millrace/kit/clock';
import type { PeerMemory } from '@millrace/kit/peer-memory';
import type { ServerStream } from '../server-stream.js';
import { GrpcCall, type CallRequest } from './call.js';
import { plainEndings, type CallEndings } from './endings.js';
import type { CallHeaders } from './headers.js';
import { requestOf } from './intake.js';
import type { Methods } from './methods.js';

export interface GrpcServerOptions {
  readonly clock: Clock;
  readonly methods: Methods;
  /** What the process holds for all its peers. */
  readonly memory: PeerMemory;
  readonly endings?: CallEndings;
}

/** Begins the call that a stream asks for; undefined when it was refused. */
export function openCall(
  stream: ServerStream,
  headers: CallHeaders,
  peer: string,
  options: GrpcServerOptions,
): GrpcCall | undefined {
  const { clock, methods, endings = plainEndings } = options;
  const known = headers.meaning as CallRequest | undefined;
  const request = known ?? requestOf(stream, headers, methods);
  if (!request) return undefined;
  headers.meaning = request;
  const call = new GrpcCall(stream, request, peer, clock, endings);
  call.begin();
  return call;
}
