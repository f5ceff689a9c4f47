import type { Attempt, AttemptOutcome, LastError, Lease, Task } from './task.js';
import type { Outcome } from './outcome.js';
import { traceOf } from './trace.js';

/** A task under the lease that is being settled. */
export type ClaimedTask = Task & { lease: Lease };

/** What the end of an attempt must know of its task. */
export type LeasedTask = Pick<
  ClaimedTask,
  'id' | 'queue' | 'attempt' | 'redriveCount' | 'headers' | 'lease'
>;

export function isClaimed<T extends Task>(task: T): task is T & ClaimedTask {
  return task.lease !== null;
}

export interface AttemptEnd {
  outcome: AttemptOutcome;
  now: number;
  errorType?: string | null;
  message?: string | null;
  httpStatus?: number | null;
  retryAfterMs?: number | null;
  nextAttemptAt?: number | null;
  snippet?: string | null;
  /** URL without its query; null if nothing was sent. */
  url?: string | null;
  remoteIp?: string | null;
  /** Null: nothing was sent. Absent: derived from the task and its lease. */
  traceId?: string | null;
}

/** The entry in a task's history for the attempt that ends now. */
export function attemptRecord(task: LeasedTask, end: AttemptEnd): Attempt {
  const { startedAt, nodeId } = task.lease;
  // The clock may have been set back in between.
  const endedAt = Math.max(startedAt, end.now);
  return {
    attempt: task.attempt,
    redrive: task.redriveCount,
    startedAt,
    endedAt,
    durationMs: endedAt - startedAt,
    outcome: end.outcome,
    errorType: end.errorType ?? null,
    message: end.message ?? null,
    httpStatus: end.httpStatus ?? null,
    retryAfterMs: end.retryAfterMs ?? null,
    nextAttemptAt: end.nextAttemptAt ?? null,
    responseSnippet: end.snippet ?? null,
    url: end.url ?? null,
    remoteIp: end.remoteIp ?? null,
    nodeId,
    traceId:
      end.traceId === undefined ? traceOf(task.headers, task.lease.token).traceId : end.traceId,
  };
}

/** Summary of the failure; undefined if there was none. */
export function lastErrorOf(
  outcome: Pick<Outcome, 'errorType' | 'message' | 'httpStatus'>,
  now: number,
): LastError | undefined {
  if (outcome.errorType === null) return undefined;
  const { errorType, message, httpStatus } = outcome;
  return { errorType, message: message ?? '', httpStatus, at: now };
}

/** The callback URL for the history, without its query, which may carry keys; null: a pull queue. */
export function urlWithoutQuery(url: string | undefined): string | null {
  return url === undefined ? null : /^[^?#]*/.exec(url)![0];
}
