import { dbReasons, type DbReason, type GrpcCode } from '@millrace/contract/db';
import { Refusal, type FieldError } from '@millrace/kit/errors';

/** Why a call failed, in terms of both gRPC and HTTP. */
export interface CallStatus {
  readonly reason: DbReason;
  readonly code: GrpcCode;
  /** HTTP status. */
  readonly status: number;
  readonly message: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly retryAfterMs: number | undefined;
  readonly violations: readonly FieldError[];
  /** An internal error, to be logged. */
  readonly isBug: boolean;
}

/** The status to send for an error. Unexpected errors reveal no details. */
export function statusOf(error: unknown): CallStatus {
  if (!(error instanceof Refusal) || !isReason(error.code)) return internal;
  const { code, status } = dbReasons[error.code];
  const { members, retryAfterMs, errors } = error.extra;
  return {
    reason: error.code,
    code,
    status,
    message: fitting(error.detail, maxMessageLength),
    metadata: fittingMetadata(members?.['metadata'] as Record<string, string> | undefined),
    retryAfterMs: retryAfterMs ?? defaultRetryMs[error.code],
    violations: errors ?? [],
    isBug: error.code === 'INTERNAL' || error.code === 'CORRUPT',
  };
}

// gRPC sends both in headers, which clients limit to a few KiB. A record key fits in full.
const maxMessageLength = 400;
const maxMetadataLength = 1_024;

/** Truncates a text for a header without splitting a character. */
function fitting(text: string, longest: number): string {
  const whole = text.toWellFormed();
  return whole.length > longest ? `${whole.slice(0, longest).toWellFormed()}...` : whole;
}

const noMetadata = {};

function fittingMetadata(metadata: Readonly<Record<string, string>> | undefined) {
  if (metadata === undefined) return noMetadata;
  const entries = Object.entries(metadata);
  return Object.fromEntries(
    entries.map(([name, value]) => [name, fitting(value, maxMetadataLength)]),
  );
}

function isReason(code: string): code is DbReason {
  return Object.hasOwn(dbReasons, code);
}

/** Transient conditions. */
const defaultRetryMs: Partial<Record<DbReason, number>> = {
  OVERLOADED: 250,
  RATE_LIMITED: 1_000,
  WATCH_LIMIT: 1_000,
  NOT_READY: 1_000,
  SHUTTING_DOWN: 1_000,
  REPLICA_BEHIND: 250,
  NOT_ENOUGH_ACKS: 250,
};

const internal: CallStatus = {
  reason: 'INTERNAL',
  code: 'INTERNAL',
  status: 500,
  message: 'Internal error. See the server log for details.',
  metadata: {},
  retryAfterMs: undefined,
  violations: [],
  isBug: true,
};
