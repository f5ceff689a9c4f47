import { dbReasons, type DbReason, type GrpcCode } from '@millrace/contract/db';
import { Refusal, type FieldError } from '@millrace/kit/errors';

/** Why a call was not carried out, in the terms of both faces. */
export interface CallStatus {
  readonly reason: DbReason;
  readonly code: GrpcCode;
  /** HTTP status. */
  readonly status: number;
  readonly message: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly retryAfterMs: number | undefined;
  readonly violations: readonly FieldError[];
  /** It is our fault: the error belongs in the log. */
  readonly isBug: boolean;
}

/** What a caller is told of an error. Whatever is not a refusal shows nothing of itself. */
export function statusOf(error: unknown): CallStatus {
  if (!(error instanceof Refusal) || !isReason(error.code)) return internal;
  const { code, status } = dbReasons[error.code];
  const { members, retryAfterMs, errors } = error.extra;
  return {
    reason: error.code,
    code,
    status,
    message: fitting(error.detail, longestMessage),
    metadata: fittingMetadata(members?.['metadata'] as Record<string, string> | undefined),
    retryAfterMs: retryAfterMs ?? defaultRetryMs[error.code],
    violations: errors ?? [],
    isBug: error.code === 'INTERNAL' || error.code === 'CORRUPT',
  };
}

// On gRPC both travel in headers, of which callers take a few KiB. A key is shown whole.
const longestMessage = 400;
const longestMetadata = 1_024;

/** A text that any header can carry: not too long, and without half a character. */
function fitting(text: string, longest: number): string {
  const whole = text.toWellFormed();
  return whole.length > longest ? `${whole.slice(0, longest).toWellFormed()}...` : whole;
}

const noMetadata = {};

function fittingMetadata(metadata: Readonly<Record<string, string>> | undefined) {
  if (metadata === undefined) return noMetadata;
  const entries = Object.entries(metadata);
  return Object.fromEntries(
    entries.map(([name, value]) => [name, fitting(value, longestMetadata)]),
  );
}

function isReason(code: string): code is DbReason {
  return Object.hasOwn(dbReasons, code);
}

/** What is over soon by itself. */
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
  message: 'A fault of the server; its log has the details.',
  metadata: {},
  retryAfterMs: undefined,
  violations: [],
  isBug: true,
};
