import type { Clock } from '@millrace/kit/clock';
import type { Random } from '@millrace/kit/random';
import type { TaskObserver } from '../background/index.js';
import {
  attemptRecord,
  type ClaimedTask,
  cutText,
  isClaimed,
  lastErrorOf,
  type LeasedTask,
  maxMessageBytes,
  maxRetryAfterMs,
  maxSnippetBytes,
  type Outcome,
  urlWithoutQuery,
  type Verdict,
  verdictOnEndedLease,
  verdictOnFailure,
} from '../core/outcome.js';
import { never, type Suspension } from '../core/flow.js';
import type { Queue } from '../core/queue.js';
import type { AttemptOutcome, Progress, Task, WholeTask } from '../core/task.js';
import {
  type Settlement,
  type SettleResult,
  StorageUnavailable,
  type TaskStore,
} from '../storage/port/task-store.js';
import type { CallbackResult } from './callback.js';
import type { InFlightRegistry, InFlightTask } from './in-flight.js';
import { handedBack, type PulledLeases } from './pull-server.js';
import type { Emit } from './queue-state.js';
import type { WorkerActivity } from './worker-activity.js';

/** The body of `:fail`. */
export interface FailReport {
  error_type?: string | undefined;
  message?: string | undefined;
  retry?: boolean | undefined;
  defer?: boolean | undefined;
  retry_after_ms?: number | undefined;
  delay_ms?: number | undefined;
  /** Details such as a stack trace. */
  stack?: string | undefined;
}

/** The progress in the body of `:extend`. */
export type ProgressReport = Omit<Progress, 'at'>;

/** One item of `tasks:settle`. */
export type TaskReport = { id: string; token: string } & Pick<Settlement, 'steps' | 'maxSteps'> &
  (
    | { outcome: 'complete'; result?: string | undefined }
    | { outcome: 'fail'; failure: FailReport }
    | { outcome: 'suspend'; suspension: Suspension }
  );

/** `cancelled`: the lease is lost because an operator cancelled the task. */
export type ReportResult =
  Task | 'lease_lost' | 'cancelled' | 'not_found' | 'too_many_steps' | 'steps_too_large';

/** A report that the store can settle. */
interface Acceptable {
  settlement: Settlement;
  outcome: ReportOutcome;
}

/** A suspension is no attempt. */
type ReportOutcome = AttemptOutcome | 'SUSPENDED';

/** The report as it is settled if its task is held under the lease. */
interface Report {
  id: string;
  token: string;
  outcome: ReportOutcome;
  settlementOf: (task: LeasedTask, now: number, queue: Queue | undefined) => Settlement;
}

export interface HandlerReportsOptions {
  store: TaskStore;
  observer: TaskObserver;
  clock: Clock;
  random: Random;
  inFlight: InFlightRegistry;
  pulledLeases: PulledLeases;
  workers: WorkerActivity;
  emit: Emit;
}

/**
 * `:complete`, `:fail` and `:extend` with a lease token. A report may arrive before the callback's
 * own answer; whichever is settled first counts. Reports can be repeated.
 */
export class HandlerReports {
  constructor(private readonly options: HandlerReportsOptions) {}

  /** `result`: JSON text. */
  complete(id: string, token: string, result?: string): Promise<ReportResult> {
    return this.#settleOne(completion(id, token, result));
  }

  fail(id: string, token: string, report: FailReport): Promise<ReportResult> {
    return this.#settleOne(this.#failure(id, token, report));
  }

  extend(
    id: string,
    token: string,
    extendMs: number,
    reported?: ProgressReport,
  ): Promise<ReportResult> {
    const { store, clock } = this.options;
    const entry = this.options.inFlight.find(id, token);
    const change = async () => {
      const task = await this.#find(id);
      if (!task) return 'not_found';
      const now = clock.now();
      if (!holds(task, token, now)) return lost(task);
      const { isAsync } = task.lease;
      const expiresAt = now + extendMs;
      const progress = reported && { ...reported, at: now };
      const result = await store.extendLease({ id, token, expiresAt, isAsync, now, progress });
      if (result === 'lease_lost') return lost(await this.#find(id));
      if (typeof result !== 'object') return result;
      const { expiresAt: leaseEnd } = result.lease!;
      if (entry) entry.leaseEnd = leaseEnd;
      this.options.pulledLeases.extended(token, leaseEnd);
      this.options.workers.extended(task.queue, token);
      return result;
    };
    return entry ? entry.serialize(change) : change();
  }

  /**
   * Settles many tasks of a queue in one call of the store. Neither the queue nor tasks that were
   * claimed on this server are read.
   */
  async settleAll(queue: Queue, reports: readonly TaskReport[]): Promise<ReportResult[]> {
    const accepted = reports.map(async (report) => {
      const { steps, maxSteps } = report;
      const found = await this.#accept(this.#toReport(report), queue);
      if (steps && isAcceptable(found)) Object.assign(found.settlement, { steps, maxSteps });
      return found;
    });
    return this.#settle(await Promise.all(accepted));
  }

  /** Workers did not get these tasks that they claimed. */
  async handBack(claimed: readonly { id: string; token: string }[]): Promise<void> {
    const reports = claimed.map(({ id, token }) =>
      this.#accept({ id, token, outcome: 'INTERRUPTED', settlementOf: handedBack }),
    );
    await this.#settle(await Promise.all(reports));
  }

  /** The worker of these tasks is gone: they are due again at once, and the attempt counts. */
  async abandon(claimed: readonly { id: string; token: string }[]): Promise<void> {
    const { random } = this.options;
    const settlementOf: Report['settlementOf'] = (task, now, queue) =>
      abandoned(task, queue!, now, random.next());
    const reports = claimed.map(({ id, token }) =>
      this.#accept({ id, token, outcome: 'INTERRUPTED', settlementOf }),
    );
    await this.#settle(await Promise.all(reports));
  }

  #toReport(report: TaskReport): Report {
    const { id, token } = report;
    if (report.outcome === 'suspend') return suspended(id, token, report.suspension);
    return report.outcome === 'complete'
      ? completion(id, token, report.result)
      : this.#failure(id, token, report.failure);
  }

  async #settleOne(report: Report): Promise<ReportResult> {
    const [result] = await this.#settle([await this.#accept(report)]);
    return result!;
  }

  /** Undecided reports are settled together; a result for each, in order. */
  async #settle(reports: readonly (Acceptable | ReportResult)[]): Promise<ReportResult[]> {
    const accepted = reports.filter(isAcceptable);
    const results = await this.#store(accepted.map(({ settlement }) => settlement));
    let next = 0;
    return reports.map((report) =>
      isAcceptable(report) ? this.#settled(report, results[next++]!) : report,
    );
  }

  async #store(settlements: readonly Settlement[]): Promise<SettleResult[]> {
    const { store, observer } = this.options;
    if (settlements.length === 0) return [];
    const settle = async (batch: readonly Settlement[]) => {
      const results = await store.settle(batch);
      observer.settled(batch, results);
      return results;
    };
    try {
      return await settle(settlements);
    } catch (error) {
      if (error instanceof StorageUnavailable || settlements.length === 1) throw error;
      // One settlement that the store rejects must not block the others.
      return (await Promise.all(settlements.map((each) => settle([each])))).flat();
    }
  }

  /** What to settle, or the result if the lease is not held. `within`: only tasks of this queue. */
  async #accept(
    { id, token, outcome, settlementOf }: Report,
    within?: Queue,
  ): Promise<Acceptable | ReportResult> {
    const { store, clock, pulledLeases } = this.options;
    const pulled = pulledLeases.find(id, token);
    const task = pulled?.task ?? (await this.#find(id));
    if (!task || (within && task.queue !== within.name)) return 'not_found';
    const now = clock.now();
    if ('attempts' in task && !holds(task, token, now)) {
      return this.#repeated(task, token, outcome, now);
    }
    const queue = within ?? (await store.getQueue(task.queue));
    const settlement = settlementOf(task, now, queue);
    // The lease may have ended while the queue was read.
    if ((pulled?.leaseEnd ?? task.lease.expiresAt) <= clock.now()) {
      const current = pulled && (await this.#find(id));
      if (!current || !holds(current, token, clock.now())) return 'lease_lost';
    }
    return { settlement, outcome };
  }

  #settled({ settlement, outcome }: Acceptable, result: SettleResult): ReportResult {
    if (result.kind === 'too_many_steps' || result.kind === 'steps_too_large') return result.kind;
    if (result.kind !== 'settled') {
      const isSame = result.kind === 'repeated' && matches(result.verdict, outcome);
      return isSame && !isCancelled(result.task) ? result.task : lost(result.task);
    }
    const { token, now } = settlement;
    const { queue } = result.task;
    const verdict = settledVerdict(settlement, result.task);
    this.#pulledEnded(queue, token, verdict);
    this.options.emit({ kind: 'settled', queue, verdict, at: now });
    return result.task;
  }

  #failure(id: string, token: string, report: FailReport): Report {
    const { random } = this.options;
    const errorType = report.error_type ?? 'INTERNAL';
    const message = cutText(report.message ?? '', maxMessageBytes);
    const snippet = report.stack === undefined ? null : cutText(report.stack, maxSnippetBytes);
    const requestedMs = report.retry_after_ms;
    const retryAfterMs = requestedMs === undefined ? null : Math.min(requestedMs, maxRetryAfterMs);
    const mayRetry = report.retry ?? true;
    const isDeferred = mayRetry && report.defer === true;
    const outcome = isDeferred ? ('DEFERRED' as const) : ('FAILED' as const);
    const settlementOf: Report['settlementOf'] = (task, now, queue) => {
      const failure = { mayRetry, isDeferred, retryAfterMs, delayMs: report.delay_ms };
      const verdict = verdictOnFailure(failure, {
        attempt: task.attempt,
        policy: queue!.config.retry,
        options: task.options,
        now,
        chance: random.next(),
      });
      const nextAttemptAt = 'dueAt' in verdict ? verdict.dueAt : null;
      const end = { outcome, now, errorType, message, retryAfterMs, snippet };
      const attempt = attemptRecord(task, { ...end, nextAttemptAt, url: urlOf(queue) });
      const error = lastErrorOf({ errorType, message, httpStatus: null }, now);
      return { id, token, now, verdict, attempt, error };
    };
    return { id, token, outcome, settlementOf };
  }

  /** A permanent failure concerns the task only: the workers work. */
  #pulledEnded(queue: string, token: string, verdict: Verdict): void {
    this.options.pulledLeases.ended(token, verdict.kind === 'retry' ? 'bad' : 'good');
    this.options.workers.settled(queue, token, verdict.kind);
  }

  /** A repeat of the report that settled this claim gets the same answer. */
  async #repeated(
    task: WholeTask,
    token: string,
    outcome: ReportOutcome,
    now: number,
  ): Promise<ReportResult> {
    // The store also records an expired lease as a retry, so the history decides.
    const last = task.attempts.at(-1);
    const isSame = outcome === 'SUSPENDED' || last?.outcome === outcome;
    if (task.lease?.token === token || !isSame) return lost(task);
    if (last?.errorType === 'CANCELLED' && isCancelled(task)) return 'cancelled';
    // Changes nothing: the token is no longer the task's. A suspension leaves no attempt.
    const lease = { token, startedAt: now, expiresAt: now, nodeId: '' } as LeasedTask['lease'];
    const attempt = last ?? attemptRecord({ ...task, lease }, { outcome: 'INTERRUPTED', now });
    const verdict = { kind: 'succeeded' } as const;
    const probe: Settlement = { id: task.id, token, now, verdict, attempt };
    const [result] = await this.options.store.settle([probe]);
    if (result?.kind !== 'repeated' || !matches(result.verdict, outcome)) return lost(task);
    return result.task;
  }

  async #find(id: string): Promise<WholeTask | undefined> {
    const found = await this.options.store.getTask(id);
    return found && 'attempts' in found ? found : undefined;
  }
}

/** Settles a claim whose worker is gone, in the way of an expired lease but without a delay. */
export function abandoned(
  task: LeasedTask,
  { config }: Queue,
  now: number,
  chance: number,
): Settlement {
  const { attempt } = task;
  const verdict = verdictOnEndedLease({ attempt, policy: config.retry, now, chance });
  const due = verdict.kind === 'retry' ? { ...verdict, dueAt: now } : verdict;
  const failure = { errorType: 'WORKER_GONE', message: 'The worker ended before the task did' };
  const nextAttemptAt = due.kind === 'retry' ? now : null;
  return {
    id: task.id,
    token: task.lease.token,
    now,
    verdict: due,
    attempt: attemptRecord(task, { outcome: 'INTERRUPTED', now, ...failure, nextAttemptAt }),
    error: lastErrorOf({ ...failure, httpStatus: null }, now),
  };
}

/** The verdict that the store has decided on: when a suspension ends, or that it was one too many. */
export function settledVerdict({ suspension, verdict }: Settlement, task: Task): Verdict {
  if (!suspension) return verdict;
  if (task.status === 'DEAD') return { kind: 'dead', reason: task.deadReason! };
  return { kind: 'suspended', dueAt: task.dueAt ?? never, flow: {} };
}

function suspended(id: string, token: string, suspension: Suspension): Report {
  const settlementOf: Report['settlementOf'] = (task, now) => {
    const verdict = { kind: 'suspended', dueAt: never, flow: {} } as const;
    const attempt = attemptRecord(task, { outcome: 'INTERRUPTED', now });
    return { id, token, now, verdict, suspension, attempt };
  };
  return { id, token, outcome: 'SUSPENDED', settlementOf };
}

function completion(id: string, token: string, result: string | undefined): Report {
  return {
    id,
    token,
    outcome: 'SUCCEEDED',
    settlementOf: (task, now, queue) => ({
      id,
      token,
      now,
      verdict: { kind: 'succeeded' },
      result,
      attempt: attemptRecord(task, {
        outcome: 'SUCCEEDED',
        now,
        httpStatus: task.lease.isAsync ? 202 : null,
        url: urlOf(queue),
      }),
    }),
  };
}

function urlOf(queue: Queue | undefined): string | null {
  return queue ? urlWithoutQuery(queue.config.callback.url) : null;
}

function isAcceptable(report: Acceptable | ReportResult): report is Acceptable {
  return typeof report === 'object' && 'settlement' in report;
}

function lost(task: Task | undefined): 'lease_lost' | 'cancelled' {
  return task && isCancelled(task) ? 'cancelled' : 'lease_lost';
}

function isCancelled(task: Task): boolean {
  return task.deadReason === 'CANCELLED';
}

function holds(task: WholeTask, token: string, now: number): task is WholeTask & ClaimedTask {
  return isClaimed(task) && task.lease.token === token && task.lease.expiresAt > now;
}

function matches(verdict: Verdict['kind'], outcome: ReportOutcome): boolean {
  switch (outcome) {
    case 'SUSPENDED':
      return verdict === 'suspended';
    case 'SUCCEEDED':
      return verdict === 'succeeded';
    case 'DEFERRED':
      return verdict === 'handed_back';
    default:
      return verdict === 'retry' || verdict === 'dead';
  }
}

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
  const verdict = verdictOf(task, queue.config.retry, end);
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
  const { suspension } = end;
  return { id, token: lease.token, now, verdict, suspension, attempt, error, ...end.stored };
}

function verdictOf(
  { attempt, options }: Task,
  policy: InFlightTask['queue']['config']['retry'],
  { outcome, now, chance, handBackAt, suspension }: CallbackEnd,
): Verdict {
  if (suspension) return { kind: 'suspended', dueAt: never, flow: {} };
  if (outcome.kind === 'succeeded') return { kind: 'succeeded' };
  if (outcome.kind === 'interrupted') return { kind: 'handed_back', dueAt: handBackAt };
  return verdictOnFailure(outcome, { attempt, policy, options, now, chance });
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
