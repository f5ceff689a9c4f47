import type { Clock } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import type { Outbound, OutboundOutcome, OutboundResponse } from '@millrace/kit/outbound';
import type { Suspension } from '../core/flow.js';
import { type Outcome, outcomeOf, unsent } from '../core/outcome.js';
import type { QueueConfig } from '../core/queue.js';
import {
  isSuspension,
  resultOfAnswer,
  type StoredResult,
  suspensionOfAnswer,
} from '../core/result.js';
import { type EndedTask, readRuns } from '../storage/port/flow-runs.js';
import type { TaskStore } from '../storage/port/task-store.js';
import type { InFlightTask } from './in-flight.js';
import type { StoreHealth } from './queue-state.js';
import type { GrpcHandlers } from './grpc-handlers.js';
import {
  AnswerFault,
  type CallbackParams,
  callbackRequest,
  type Credentials,
  evaluated,
} from './callback-request.js';

export interface CallbackOptions {
  store: TaskStore;
  outbound: Outbound;
  grpcHandlers?: GrpcHandlers | undefined;
  clock: Clock;
  log: Log;
}

export interface CallbackResult {
  outcome: Outcome;
  /** False: the request never left this server. */
  wasSent: boolean;
  /** The result that the callback returned, if the queue keeps it. */
  stored?: StoredResult | undefined;
  /** The handler waits instead of having succeeded. */
  suspension?: Suspension | undefined;
}

/** Sends the callback of a task over HTTP or gRPC. A request that cannot be sent is an outcome. */
export async function sendCallback(
  entry: InFlightTask,
  { credentials, now }: { credentials: Credentials; now: number },
  options: CallbackOptions,
): Promise<CallbackResult> {
  const { task } = entry;
  try {
    const runs = task.flow?.dependsOn ? await readRuns(options.store, [task]) : undefined;
    return await callHandler(
      entry,
      { credentials, now },
      options,
      runs?.get(task.id)?.dependencies,
    );
  } catch (error) {
    if (!(error instanceof AnswerFault)) {
      return { outcome: unsent(messageOf(error)), wasSent: false };
    }
    const { id, queue } = task;
    options.log.error({ err: error.cause, task: id, queue }, 'callback answer not evaluated');
    return { outcome: { ...unsent(error.message), ...error.facts }, wasSent: true };
  }
}

async function callHandler(
  entry: InFlightTask,
  { credentials, now }: { credentials: Credentials; now: number },
  options: CallbackOptions,
  dependencies: readonly EndedTask[] | undefined,
): Promise<CallbackResult> {
  const { config } = entry.queue;
  const { timeoutMs = config.callback.timeout_ms } = entry.task.options ?? {};
  await extendFor(entry, timeoutMs, now, options);
  const params = {
    dependencies,
    leaseToken: entry.token,
    trace: entry.trace,
    config,
    credentials,
    now,
    timeoutMs: Math.min(timeoutMs, entry.leaseEnd - now),
    signal: entry.abort,
  };
  const call = config.callback.protocol === 'grpc' ? callGrpc : callHttp;
  const { durationMs, ...result } = await call(entry, params, options);
  entry.state.series.durations.observe(durationMs / 1000);
  return { ...result, wasSent: true };
}

/** The lease covers the timeout of the queue; a task with a longer one needs a longer lease. */
async function extendFor(
  entry: InFlightTask,
  timeoutMs: number,
  now: number,
  { store, log }: CallbackOptions,
): Promise<void> {
  const { callback, lease } = entry.queue.config;
  if (timeoutMs <= callback.timeout_ms) return;
  const { id, queue } = entry.task;
  const expiresAt = now + timeoutMs + lease.grace_ms;
  try {
    const change = { id, token: entry.token, expiresAt, isAsync: false, now };
    const task = await entry.serialize(() => store.extendLease(change));
    if (typeof task === 'object') entry.leaseEnd = task.lease!.expiresAt;
  } catch (error) {
    // The callback then has the time of its lease.
    log.warn({ err: error, task: id, queue }, 'failed to extend the lease to the timeout');
  }
}

type Answered = Omit<CallbackResult, 'wasSent'> & { durationMs: number };

function callGrpc(
  { task }: InFlightTask,
  params: CallbackParams,
  { grpcHandlers }: CallbackOptions,
): Promise<Answered> {
  if (!grpcHandlers) throw new Error('This server makes no gRPC calls');
  return grpcHandlers.execute(task, params);
}

async function callHttp(
  { task }: InFlightTask,
  params: CallbackParams,
  { outbound, clock }: CallbackOptions,
): Promise<Answered> {
  const answer = await outbound.request(callbackRequest(task, params));
  const { durationMs } = answer;
  const facts = {
    httpStatus: answer.ok ? answer.status : null,
    remoteIp: answer.remoteIp || null,
  };
  return evaluated(facts, () => {
    const outcome = outcomeOf(answer, params.config.retry, clock.now());
    if (answer.ok && isSuspension(answer)) return suspended(answer, outcome, durationMs);
    return { outcome, durationMs, stored: storedResult(answer, params.config) };
  });
}

/** The task waits as the answer says; an answer that cannot be read is a failure. */
function suspended(answer: OutboundResponse, outcome: Outcome, durationMs: number): Answered {
  const suspension = suspensionOfAnswer(answer);
  if (typeof suspension !== 'string') return { outcome, durationMs, suspension };
  const message = `The answer suspends the task, but ${suspension}`;
  const failure = { kind: 'failed', errorType: 'INVALID_SUSPENSION', message } as const;
  return { outcome: { ...outcome, ...failure }, durationMs };
}

function storedResult(
  answer: OutboundOutcome,
  { callback }: QueueConfig,
): StoredResult | undefined {
  if (!callback.keep_result || !answer.ok) return undefined;
  const isSuccess = answer.status >= 200 && answer.status < 300;
  return isSuccess ? resultOfAnswer(answer) : undefined;
}

export interface HandOverOptions {
  store: TaskStore;
  clock: Clock;
  health: StoreHealth;
  /** Ends the retries. */
  hasGivenUp: () => boolean;
}

/**
 * The handler continues on its own: its lease now lasts for `async_timeout_ms`, even if that is
 * shorter than the callback's. An `:extend` that came before the answer still counts.
 */
export function handOver(
  entry: InFlightTask,
  { store, clock, health, hasGivenUp }: HandOverOptions,
): Promise<void> {
  const { id, lease } = entry.task;
  const asyncTimeoutMs = entry.queue.config.callback.async_timeout_ms;
  return entry.serialize(async () => {
    for (let failures = 0; ; failures++) {
      try {
        if (!(await entry.isHeld(store, clock))) break;
        const now = clock.now();
        const end = { expiresAt: now + asyncTimeoutMs, replaces: lease.expiresAt };
        await store.extendLease({ id, token: lease.token, ...end, isAsync: true, now });
        return health.succeeded('extend');
      } catch (error) {
        const pauseMs = health.failed('extend', error, failures);
        if (hasGivenUp()) return;
        await clock.sleep(pauseMs);
      }
    }
    entry.state.series.lateAnswers.inc();
  });
}
