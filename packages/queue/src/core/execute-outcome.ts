import { maxRetryAfterMs } from './backoff.js';
import { cutText } from './excerpt.js';
import { maxMessageBytes, type Outcome, type TargetHealth } from './outcome.js';
import { maxResultBytes, type StoredResult } from './result.js';

/** The end of a call of `queue.v1.Handler/Execute`. */
export interface ExecuteAnswer {
  /** A gRPC status code: that of the call, or of its answer. */
  code: number;
  message: string;
  /** Delay that the handler asks for. */
  retryAfterMs: number | null;
  remoteIp: string | null;
}

interface StatusRule {
  name: string;
  mayRetry: boolean;
  /** Error type, if it is not the name. */
  errorType?: string;
  health: TargetHealth;
}

const retry = (name: string, health: TargetHealth, errorType?: string): StatusRule => ({
  name,
  mayRetry: true,
  health,
  ...(errorType !== undefined && { errorType }),
});
const dead = (name: string, health: TargetHealth = 'good'): StatusRule => ({
  name,
  mayRetry: false,
  health,
});

/** As the HTTP status with the same meaning is classified; by status code from 1. */
const rules: readonly StatusRule[] = [
  retry('CANCELLED', 'good'),
  retry('UNKNOWN', 'bad'),
  dead('INVALID_ARGUMENT'),
  retry('DEADLINE_EXCEEDED', 'bad', 'TIMEOUT'),
  dead('NOT_FOUND'),
  dead('ALREADY_EXISTS'),
  dead('PERMISSION_DENIED'),
  retry('RESOURCE_EXHAUSTED', 'bad', 'RATE_LIMITED'),
  dead('FAILED_PRECONDITION'),
  retry('ABORTED', 'good'),
  dead('OUT_OF_RANGE'),
  dead('UNIMPLEMENTED', 'bad'),
  retry('INTERNAL', 'bad'),
  retry('UNAVAILABLE', 'bad'),
  dead('DATA_LOSS', 'bad'),
  dead('UNAUTHENTICATED'),
];

export function executeOutcome(answer: ExecuteAnswer): Outcome {
  const { code, message, remoteIp } = answer;
  const common = { httpStatus: null, isDeferred: false, snippet: null, remoteIp };
  if (code === 0) {
    const good = { kind: 'succeeded', errorType: null, message: null, health: 'good' } as const;
    return { ...common, ...good, mayRetry: true, retryAfterMs: null };
  }
  const rule = rules[code - 1] ?? dead(`GRPC_${code}`);
  const text = `The handler answered with ${rule.name}`;
  const { retryAfterMs: wantedMs } = answer;
  return {
    ...common,
    kind: 'failed',
    errorType: rule.errorType ?? rule.name,
    message: cutText(message === '' ? text : `${text}: ${message}`, maxMessageBytes),
    mayRetry: rule.mayRetry,
    retryAfterMs: wantedMs === null ? null : Math.min(Math.max(0, wantedMs), maxRetryAfterMs),
    health: rule.health,
  };
}

/** The result in the answer of a handler: JSON of at most 64 KiB. */
export function executeResult(bytes: Uint8Array): StoredResult {
  if (bytes.length === 0) return {};
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    const result = JSON.stringify(JSON.parse(text));
    return Buffer.byteLength(result) > maxResultBytes ? { resultDropped: true } : { result };
  } catch {
    // Not JSON: as for a callback over HTTP, there is no result.
    return {};
  }
}
