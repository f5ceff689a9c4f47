import { grpcCodes, type GrpcCode } from '../base/status.js';
import type { Failure } from '../base/failure.js';
import type { ResponseHeaders } from './response-headers.js';

/** Why a call failed: the status of the server, or of this client if the server sent none. */
export class CallError extends Error {
  override readonly name = 'CallError';

  constructor(
    readonly code: number,
    /** The message of the status. */
    readonly details: string,
    /** An encoded google.rpc.Status, if the server sent one. */
    readonly statusDetails?: Buffer,
    /** Why there is no connection. */
    override readonly cause?: Failure,
  ) {
    super(details);
  }
}

export function callError(code: GrpcCode, details: string): CallError {
  return new CallError(grpcCodes[code], details);
}

/** The error of calls whose connection was not opened, or was lost. */
export function connectionError(cause: Failure): CallError {
  return new CallError(grpcCodes.UNAVAILABLE, cause.message, undefined, cause);
}

/** The error that a response ends with; undefined for status OK. */
export function errorOf(headers: ResponseHeaders): CallError | undefined {
  const status = headers['grpc-status'];
  if (status === '0') return undefined;
  if (status === undefined) return httpError(headers[':status']);
  const details = headers['grpc-status-details-bin'];
  return new CallError(
    /^\d{1,2}$/.test(status) ? Number(status) : grpcCodes.UNKNOWN,
    percentDecoded(headers['grpc-message'] ?? ''),
    details === undefined ? undefined : Buffer.from(details, 'base64'),
  );
}

// From the gRPC specification, for responses of proxies.
const codesByHttpStatus: Readonly<Record<string, GrpcCode>> = {
  400: 'INTERNAL',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'UNIMPLEMENTED',
  429: 'UNAVAILABLE',
  502: 'UNAVAILABLE',
  503: 'UNAVAILABLE',
  504: 'UNAVAILABLE',
};

function httpError(status: string | undefined): CallError {
  if (status === undefined || status === '200') {
    return callError('UNKNOWN', 'The response has no grpc-status.');
  }
  const code = codesByHttpStatus[status] ?? 'UNKNOWN';
  return callError(code, `The server answered with HTTP status ${status}.`);
}

/** The error of a stream that the peer reset, by the gRPC specification. */
export function resetError(http2Code: number): CallError {
  const details = `RST_STREAM with error code ${http2Code}`;
  switch (http2Code) {
    case 7:
      return callError('UNAVAILABLE', details);
    case 8:
      return callError('CANCELLED', details);
    case 11:
      return callError('RESOURCE_EXHAUSTED', details);
    case 12:
      return callError('PERMISSION_DENIED', details);
    default:
      return callError('INTERNAL', details);
  }
}

/** Invalid escapes stay as they are. */
function percentDecoded(text: string): string {
  if (!text.includes('%')) return text;
  const bytes = text.replaceAll(/%([0-9A-Fa-f]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return Buffer.from(bytes, 'latin1').toString('utf8');
}
