import type { ServerStream } from '../server-stream.js';
import { explained, type CallAbortReasons } from './abort-reasons.js';
import { isEncoding } from './compression.js';
import type { CallRequest } from './call.js';
import { invalid } from './deframer.js';
import type { CallHeaders } from './headers.js';
import type { Methods } from './methods.js';
import { Outbox } from './outbox.js';
import { sendPlainError } from './plain-error.js';
import { faultStatus, type GrpcStatus } from './status.js';
import { timeoutMsOf } from './timeout.js';

/** Parses the request headers; returns undefined after sending an error. */
export function parseRequest(
  stream: ServerStream,
  headers: CallHeaders,
  methods: Methods,
  reasons: CallAbortReasons,
): CallRequest | undefined {
  if (headers[':method'] !== 'POST') return sendPlainError(stream, 405);
  if (!isGrpc(headers['content-type'])) return sendPlainError(stream, 415);
  const path = headers[':path'] ?? '';
  const method = methods.get(path);
  if (!method) {
    const text = `Method ${shown(path)} does not exist.`;
    return refuse(stream, faultStatus('UNIMPLEMENTED', text, 'unknown_method'), reasons);
  }
  const timeout = headers['grpc-timeout'];
  const timeoutMs = timeout === undefined ? undefined : timeoutMsOf(timeout);
  if (timeout !== undefined && timeoutMs === undefined) {
    const text = `grpc-timeout must be up to 8 digits and one of H, M, S, m, u, n, not ${shown(timeout)}.`;
    return refuse(stream, invalid(text), reasons);
  }
  const encoding = headers['grpc-encoding'] ?? 'identity';
  if (!isEncoding(encoding)) {
    const text = `grpc-encoding ${shown(encoding)} is not supported; see grpc-accept-encoding.`;
    return refuse(stream, faultStatus('UNIMPLEMENTED', text, 'invalid_request'), reasons);
  }
  return { headers, method, encoding, timeoutMs };
}

function isGrpc(type: string | undefined): boolean {
  return (
    type === 'application/grpc' ||
    (type !== undefined && /^application\/grpc(?:\+proto)?\s*(?:;|$)/i.test(type))
  );
}

function refuse(stream: ServerStream, status: GrpcStatus, reasons: CallAbortReasons): undefined {
  new Outbox(stream).end(explained(status, reasons));
}

function shown(value: string): string {
  return value.slice(0, 100);
}
