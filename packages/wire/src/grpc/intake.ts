import type { ServerStream } from '../server-stream.js';
import { isEncoding } from './compression.js';
import type { CallRequest } from './call.js';
import type { CallHeaders } from './headers.js';
import type { Methods } from './methods.js';
import { Outbox } from './outbox.js';
import { refusePlainly } from './plain-answer.js';
import { failed, type GrpcStatus } from './status.js';
import { timeoutMsOf } from './timeout.js';

/** What the headers of a stream ask for; undefined when it has been answered that it cannot be. */
export function requestOf(
  stream: ServerStream,
  headers: CallHeaders,
  methods: Methods,
): CallRequest | undefined {
  if (headers[':method'] !== 'POST') return refusePlainly(stream, 405);
  if (!isGrpc(headers['content-type'])) return refusePlainly(stream, 415);
  const path = headers[':path'] ?? '';
  const method = methods.get(path);
  if (!method) {
    return refuse(stream, failed('UNIMPLEMENTED', `There is no method ${shown(path)} here.`));
  }
  const timeout = headers['grpc-timeout'];
  const timeoutMs = timeout === undefined ? undefined : timeoutMsOf(timeout);
  if (timeout !== undefined && timeoutMs === undefined) {
    const text = `grpc-timeout is up to 8 digits and one of H, M, S, m, u, n; not ${shown(timeout)}.`;
    return refuse(stream, failed('INTERNAL', text));
  }
  const encoding = headers['grpc-encoding'] ?? 'identity';
  if (!isEncoding(encoding)) {
    const text = `grpc-encoding ${shown(encoding)} is not known; see grpc-accept-encoding.`;
    return refuse(stream, failed('UNIMPLEMENTED', text));
  }
  return { headers, method, encoding, timeoutMs };
}

function isGrpc(type: string | undefined): boolean {
  return (
    type === 'application/grpc' ||
    (type !== undefined && /^application\/grpc(?:\+proto)?\s*(?:;|$)/i.test(type))
  );
}

function refuse(stream: ServerStream, status: GrpcStatus): undefined {
  new Outbox(stream).end(status);
}

function shown(value: string): string {
  return value.slice(0, 100);
}
