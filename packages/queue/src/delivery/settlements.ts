import { attemptRecord, lastErrorOf, urlWithoutQuery } from '../core/attempt-record.js';
import type { Outcome } from '../core/outcome.js';
import type { AttemptOutcome } from '../core/task.js';
import { verdictOnFailure, type Verdict } from '../core/verdict.js';
import type { Settlement } from '../storage/port/task-store.js';
import type { CallbackResult } from './callback/callback.js';
import type { InFlightTask } from './state/in-flight.js';

export interface CallbackEnd extends CallbackResult {
  now: number;
  /** From 0 up to 1, for the jitter of a retry. */
  chance: number;
  /** When an interrupted task may be claimed again. */
  handBackAt: number;
}

/** How the claim of a task ends after its callback. */
export function settlementOf({ task, queue, trace }: InFlightTask, end: CallbackEnd): Settlement {
  const { outcome, wasSent, now } = end;
  const verdict = verdictOf(task.attempt, queue.config.retry, end);
  const attempt = attemptRecord(task, {
    outcome: nameOf(outcome, verdict),
    now,
    errorType: outcome.errorType,
    message: outcome.message,
    httpStatus: outcome.httpStatus,
    retryAfterMs: outcome.retryAfterMs,
    nextAttemptAt: 'dueAt' in verdict ? verdict.dueAt : null,
    snippet: outcome.snippet,
    url: wasSent ? urlWithoutQuery(queue.config.callback.url) : null,
    remoteIp: outcome.remoteIp,
    traceId: wasSent ? trace.traceId : null,
  });
  const { id, lease } = task;
  const error = lastErrorOf(outcome, now);
  return { id, token: lease.token, now, verdict, attempt, error, ...end.stored };
}

function verdictOf(
  attempt: number,
  policy: InFlightTask['queue']['config']['retry'],
  { outcome, now, chance, handBackAt }: CallbackEnd,
): Verdict {
  if (outcome.kind === 'succeeded') return { kind: 'succeeded' };
  if (outcome.kind === 'interrupted') return { kind: 'handed_back', dueAt: handBackAt };
  return verdictOnFailure(outcome, { attempt, policy, now, chance });
}

const outcomeNames = {
  succeeded: 'SUCCEEDED',
  async: 'SUCCEEDED',
  failed: 'FAILED',
  interrupted: 'INTERRUPTED',
} as const;

function nameOf({ kind }: Outcome, verdict: Verdict): AttemptOutcome {
  const isDeferred = kind === 'failed' && verdict.kind === 'handed_back';
  return isDeferred ? 'DEFERRED' : outcomeNames[kind];
}
