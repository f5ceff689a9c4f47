import { HeaderList } from '../http2/header-block.js';
import type { Http2Stream } from '../http2/stream.js';
import { explained, type CallAbortReasons } from './abort-reasons.js';
import { isEncoding } from './compression.js';
import type { CallRequest } from './call.js';
import { invalid } from '../base/deframer.js';
import type { CallHeaders, Methods } from './methods.js';
import { Outbox } from './outbox.js';
import { faultStatus, type GrpcStatus } from '../base/status.js';

/** Parses the request headers; returns undefined after sending an error. */
export function parseRequest(
  stream: Http2Stream,
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

function refuse(stream: Http2Stream, status: GrpcStatus, reasons: CallAbortReasons): undefined {
  new Outbox(stream).end(explained(status, reasons));
}

function shown(value: string): string {
  return value.slice(0, 100);
}

const text = Buffer.from('This is a gRPC server. Use POST with content-type application/grpc.\n');

const headers = {
  405: plainHeaders(405),
  415: plainHeaders(415),
};

function plainHeaders(status: number): HeaderList {
  return new HeaderList({ ':status': String(status), 'content-type': 'text/plain', allow: 'POST' });
}

/** For clients that are not gRPC: they would take a gRPC error, status 200, for a success. */
function sendPlainError(stream: Http2Stream, status: 405 | 415): undefined {
  stream.respond(headers[status]);
  new Outbox(stream).pushFramed(text);
  stream.end();
}

const unitsMs: Record<string, number> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/** Milliseconds of a `grpc-timeout`; undefined when it is not valid. */
export function timeoutMsOf(text: string): number | undefined {
  const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? [];
  return unit === undefined ? undefined : Number(digits) * unitsMs[unit]!;
}
