import { STATUS_CODES } from 'node:http';
import { Refusal } from '../base/errors.js';
import type { CodeTable, FieldError } from '../base/errors.js';

/** An RFC 9457 problem document. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  instance: string;
  /** Absent only for errors below the API: bytes that are not an HTTP request. */
  code?: string;
  errors?: readonly FieldError[];
  [member: string]: unknown;
}

export interface ProblemResponse {
  problem: Problem;
  headers: Readonly<Record<string, string>>;
  /** True for a bug of the server, which must be logged. */
  isBug: boolean;
}

/** The error codes of the HTTP layer itself. */
export interface HttpErrorCodes {
  notFound: string;
  methodNotAllowed: string;
  payloadTooLarge: string;
  unsupportedMediaType: string;
  internal: string;
  /** The server holds too much memory for its peers. Undefined: a 503 without a code. */
  overloaded: string | undefined;
}

export const defaultHttpErrorCodes: HttpErrorCodes = {
  notFound: 'NOT_FOUND',
  methodNotAllowed: 'METHOD_NOT_ALLOWED',
  payloadTooLarge: 'PAYLOAD_TOO_LARGE',
  unsupportedMediaType: 'UNSUPPORTED_MEDIA_TYPE',
  internal: 'INTERNAL',
  overloaded: undefined,
};

export interface ProblemOptions {
  codes: CodeTable;
  httpErrorCodes: HttpErrorCodes;
}

/** `QUEUE_NOT_FOUND` is `urn:millrace:problem:queue-not-found`. */
export function problemType(code: string): string {
  return `urn:millrace:problem:${code.toLowerCase().replaceAll('_', '-')}`;
}

/**
 * Maps an error to a problem document. An error that is not a refusal with a known code is a bug,
 * and its details are not shown.
 */
export function problemFrom(
  error: unknown,
  requestId: string,
  options: ProblemOptions,
): ProblemResponse {
  const { codes, httpErrorCodes } = options;
  const instance = requestInstance(requestId);
  const meaning = error instanceof Refusal ? meaningOf(codes, error.code) : undefined;
  if (!(error instanceof Refusal) || meaning === undefined) {
    const code = httpErrorCodes.internal;
    const title = meaningOf(codes, code)?.title ?? 'Internal error';
    const detail = 'Internal error';
    const problem = { type: problemType(code), title, status: 500, detail, instance, code };
    return { problem, headers: {}, isBug: true };
  }
  const { code, detail, extra } = error;
  const problem: Problem = {
    type: problemType(code),
    title: meaning.title,
    status: meaning.status,
    detail,
    instance,
    code,
    ...(extra.errors && { errors: extra.errors }),
    ...extra.members,
  };
  return { problem, headers: refusalHeaders(error, meaning.status), isBug: false };
}

/** For an error below the API, which has no code: its type is `about:blank` (RFC 9457). */
export function bareProblem(status: number, detail: string, requestId: string): Problem {
  const title = STATUS_CODES[status] ?? 'Error';
  return { type: 'about:blank', title, status, detail, instance: requestInstance(requestId) };
}

function requestInstance(requestId: string): string {
  return `urn:millrace:request:${requestId}`;
}

function meaningOf(codes: CodeTable, code: string) {
  return Object.hasOwn(codes, code) ? codes[code] : undefined;
}

function refusalHeaders(refusal: Refusal, status: number): Record<string, string> {
  const headers: Record<string, string> = {};
  // RFC 9110 requires it on every 401.
  if (status === 401) headers['www-authenticate'] = 'Bearer realm="millrace"';
  const { retryAfterMs } = refusal.extra;
  if (retryAfterMs !== undefined) {
    headers['retry-after'] = String(Math.max(1, Math.ceil(retryAfterMs / 1000)));
  }
  for (const [name, value] of Object.entries(refusal.extra.headers ?? {})) {
    headers[name.toLowerCase()] = value;
  }
  return headers;
}
