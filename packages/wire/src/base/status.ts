/** The status codes of gRPC. */
export const grpcCodes = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

export type GrpcCode = keyof typeof grpcCodes;

/** The status of a call. */
export interface GrpcStatus {
  readonly code: number;
  readonly message: string;
  /** An encoded google.rpc.Status. */
  readonly details?: Buffer;
  /** Set when the transport refused the call, not its method. */
  readonly fault?: TransportFault;
}

/** Why the transport refused a call. */
export interface TransportFault {
  readonly kind: 'unknown_method' | 'invalid_request' | 'too_large' | 'out_of_memory' | 'too_late';
  /** The limit of a message that is too large. */
  readonly limitBytes?: number;
}

export const ok: GrpcStatus = { code: 0, message: '' };

export function errorStatus(code: GrpcCode, message: string): GrpcStatus {
  return { code: grpcCodes[code], message };
}

/** A status of the transport itself. */
export function faultStatus(
  code: GrpcCode,
  message: string,
  kind: TransportFault['kind'],
): GrpcStatus {
  return { code: grpcCodes[code], message, fault: { kind } };
}

export function tooLarge(message: string, limitBytes: number): GrpcStatus {
  const code = grpcCodes.RESOURCE_EXHAUSTED;
  return { code, message, fault: { kind: 'too_large', limitBytes } };
}

const okTrailers: Readonly<Record<string, string>> = { 'grpc-status': '0' };

export function trailersOf(status: GrpcStatus): Readonly<Record<string, string>> {
  const { code, message, details } = status;
  if (code === 0) return okTrailers;
  const trailers: Record<string, string> = {
    'grpc-status': String(code),
    'grpc-message': percentEncoded(message),
  };
  if (details) trailers['grpc-status-details-bin'] = unpadded(details.toString('base64'));
  return trailers;
}

// Printable ASCII except the percent sign, without leading or trailing spaces.
const plain = /^(?:[!-$&-~](?:[ -$&-~]*[!-$&-~])?)?$/;

/** Percent-encodes a text for `grpc-message`. */
export function percentEncoded(text: string): string {
  if (plain.test(text)) return text;
  const bytes = Buffer.from(text, 'utf8');
  let encoded = '';
  bytes.forEach((byte, i) => {
    const isInside = i > 0 && i < bytes.length - 1;
    const isPlain = byte > 0x20 && byte < 0x7f && byte !== 0x25;
    encoded += isPlain || (byte === 0x20 && isInside) ? String.fromCharCode(byte) : escaped(byte);
  });
  return encoded;
}

function escaped(byte: number): string {
  return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
}

function unpadded(base64: string): string {
  const end = base64.indexOf('=');
  return end === -1 ? base64 : base64.slice(0, end);
}
