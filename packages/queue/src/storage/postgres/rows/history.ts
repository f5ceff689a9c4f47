import type { Attempt, AttemptOutcome } from '../../../core/task.js';

/**
 * An attempt as stored: its values as a JSON array in this order, without trailing nulls. With field
 * names it would be three times as long, and most of what a settlement sends.
 */
type StoredAttempt = [
  attempt: number,
  redrive: number,
  startedAt: number,
  endedAt: number,
  durationMs: number,
  outcome: AttemptOutcome,
  nodeId: string,
  httpStatus?: number | null,
  url?: string | null,
  remoteIp?: string | null,
  traceId?: string | null,
  responseSnippet?: string | null,
  errorType?: string | null,
  message?: string | null,
  retryAfterMs?: number | null,
  nextAttemptAt?: number | null,
];

export function attemptText(of: Attempt): string {
  const stored: StoredAttempt = [
    of.attempt,
    of.redrive,
    of.startedAt,
    of.endedAt,
    of.durationMs,
    of.outcome,
    of.nodeId,
    of.httpStatus,
    of.url,
    of.remoteIp,
    of.traceId,
    of.responseSnippet,
    of.errorType,
    of.message,
    of.retryAfterMs,
    of.nextAttemptAt,
  ];
  return JSON.stringify(stored.slice(0, stored.findLastIndex((value) => value !== null) + 1));
}

/** Parses attempts joined by commas. Older versions wrote them with field names. */
export function attemptsOf(text: string): Attempt[] {
  if (text === '') return [];
  return (JSON.parse(`[${text}]`) as (Attempt | StoredAttempt)[]).map((stored) =>
    Array.isArray(stored) ? toAttempt(stored) : stored,
  );
}

function toAttempt(stored: StoredAttempt): Attempt {
  return {
    attempt: stored[0],
    redrive: stored[1],
    startedAt: stored[2],
    endedAt: stored[3],
    durationMs: stored[4],
    outcome: stored[5],
    errorType: stored[12] ?? null,
    message: stored[13] ?? null,
    httpStatus: stored[7] ?? null,
    retryAfterMs: stored[14] ?? null,
    nextAttemptAt: stored[15] ?? null,
    responseSnippet: stored[11] ?? null,
    url: stored[8] ?? null,
    remoteIp: stored[9] ?? null,
    nodeId: stored[6],
    traceId: stored[10] ?? null,
  };
}
