import { openApiDocument } from '@millrace/contract/documents';
import { queueCodes, type QueueOperationId, type QueueOperations } from '@millrace/contract/queue';
import type { Clock } from '@millrace/kit/clock';
import {
  answering,
  bindOperations,
  type BoundApp,
  type Call,
  type DocumentSchemas,
  type Handlers,
  ok,
  type OperationDescription,
} from '@millrace/kit/http';
import type { Log } from '@millrace/kit/log';
import type { Metrics } from '@millrace/kit/metrics';
import type { PeerMemory } from '@millrace/kit/peer-memory';
import { bearerToken, type TokenSet } from '@millrace/kit/tokens';
import type { TlsOptions } from 'node:tls';
import {
  anonymous,
  type Principal,
  type QueueContext,
  requireGrant,
  requireGrantSomewhere,
  requireQueue,
  type Role,
} from '../operations/base/context.js';
import type { Load, Urgency } from '../operations/base/limits.js';
import { fail } from '../operations/base/refusal.js';
import { claimTasks, handBackTasks } from '../operations/claim-tasks.js';
import { actOnDead, listDlq, listDlqGroups } from '../operations/dead-letters.js';
import { getFlow, submitFlow } from '../operations/flows.js';
import { getLiveness, getOpenapi, getReadiness } from '../operations/health.js';
import { cancelJob, createJob, getJob, listJobs } from '../operations/jobs.js';
import {
  deleteQueue,
  getQueueConfig,
  listQueues,
  putQueueConfig,
  setQueuePaused,
  type WireConfig,
} from '../operations/queues.js';
import {
  getTaskRun,
  getTaskTree,
  recordSteps,
  sendQueueSignal,
  sendSignal,
} from '../operations/runs.js';
import {
  deleteSchedule,
  getSchedule,
  listSchedules,
  putSchedule,
  runSchedule,
  setSchedulePaused,
} from '../operations/schedules.js';
import { completeTask, extendTask, failTask, settleTasks } from '../operations/settle.js';
import { getQueueMetrics, getStats, listAudit, listWorkers } from '../operations/stats.js';
import { submitBatch, submitTask } from '../operations/submit.js';
import {
  cancelTask,
  cancelTasks,
  countTasks,
  getTask,
  listTasks,
  runTaskNow,
  updateTask,
} from '../operations/tasks.js';
import { StorageUnavailable } from '../storage/port/task-store.js';
import { queueVersion } from './config.js';
import { backupHandlers, eventHandlers } from './event-stream.js';

export interface QueueAppOptions {
  context: QueueContext;
  schemas: DocumentSchemas;
  tokens: { readonly current: TokenSet<Role> };
  load: Load;
  metrics: Metrics;
  accessLog: AccessLog;
  peerMemory?: PeerMemory;
  maxConnections?: number;
  tls?: TlsOptions | undefined;
  /** Called for every response that the contract does not describe. For tests. */
  onUndocumentedResponse?: ((difference: string) => void) | undefined;
}

/** The HTTP API: the operations of the contract with authentication and load shedding. */
export function queueApp(options: QueueAppOptions): BoundApp {
  const { context, schemas, tokens, load, metrics, accessLog, onUndocumentedResponse } = options;
  const { peerMemory, maxConnections, tls } = options;
  const { clock, random, log } = context;
  return bindOperations<Served, Principal>({
    world: { clock, random, log: accessLogOf(log, accessLog) },
    document: openApiDocument('queue'),
    schemas,
    handlersCheckBodies: true,
    codes: queueCodes,
    httpErrorCodes: { overloaded: 'RATE_LIMITED' },
    metrics,
    peerMemory,
    maxConnections,
    tls,
    handlers: queueHandlers(context, load, (authorization) =>
      authenticate(authorization, tokens.current, clock),
    ),
    // An unavailable store is not a bug.
    translateError: (error) =>
      error instanceof StorageUnavailable ? storageUnavailable(error) : undefined,
    load,
    anonymous,
    principalName: ({ principal }) => principal,
    protectedPrefixes: ['/v1'],
    invalidQueryCode: 'INVALID_QUERY',
    quietOperations: ['getLiveness', 'getReadiness'],
    precompiledOperations: ['submitTask', 'submitBatch'],
    authenticate: ({ headers }) => authenticate(headers.authorization, tokens.current, clock),
    authorize: (caller, operation, params) => {
      authorize(caller, operation, params);
      // Checked here, so that the body of a shed request is not read.
      load.admit(urgencies[operation.id] ?? 'upkeep');
    },
    ...(onUndocumentedResponse && { onUndocumentedResponse }),
  });
}

const urgencies: Readonly<Partial<Record<string, Urgency>>> = {
  submitTask: 'new_work',
  submitBatch: 'new_work',
  submitFlow: 'new_work',
  getTask: 'new_work',
  getStats: 'new_work',
};

const retryAfterMs = 5_000;

function storageUnavailable(cause: StorageUnavailable): Error {
  const detail = 'The task store does not respond; retry, a submit with the same id.';
  return fail('STORAGE_UNAVAILABLE', detail, { retryAfterMs, cause });
}

/** Authenticates callers by bearer token. */
export function authenticate(
  authorization: string | undefined,
  tokens: TokenSet<Role>,
  clock: Clock,
): Principal {
  const token = bearerToken(authorization);
  if (token === undefined) {
    throw fail('UNAUTHENTICATED', 'Send a token as "Authorization: Bearer <token>".');
  }
  const found = tokens.find(token, clock.now());
  if (found.outcome === 'known') return found.holder;
  throw found.outcome === 'expired'
    ? fail('UNAUTHENTICATED', `The token ${found.holder.id} has expired; ask for a new one.`)
    : fail('UNAUTHENTICATED', 'The token is not known here, or was revoked.');
}

/**
 * Checks grants by the path alone; for a task or a job, the operation checks its queue later.
 */
export function authorize(
  caller: Principal,
  operation: OperationDescription,
  params: Readonly<Record<string, string>>,
): void {
  const role = operation.minRole as Role;
  switch (operation.extensions['x-grant-scope']) {
    case 'queue':
      requireGrant(caller, params['queue']!, role);
      return;
    case 'any':
      requireGrantSomewhere(caller, role);
      return;
    case 'granted':
      if (caller.grants.allowsSomewhere('submitter')) return;
      requireGrantSomewhere(caller, 'worker');
      return;
    case 'task':
    case 'job':
      return;
    default:
      throw new Error(`${operation.id} does not say what its grant is checked on`);
  }
}

export type AccessLog = 'all' | 'failures' | 'off';

/** The access log: filters the HTTP layer's line per request by the setting. */
export function accessLogOf(log: Log, mode: AccessLog): Log {
  if (mode === 'all') return log;
  const isWanted = (status: number) => mode === 'failures' && isFailure(status);
  return {
    debug: (fields, message) => log.debug(fields, message),
    info: (fields, message) => {
      const { status } = fields as { status?: number };
      if (message !== 'request' || isWanted(status ?? 0)) log.info(fields, message);
    },
    warn: (fields, message) => log.warn(fields, message),
    error: (fields, message) => log.error(fields, message),
    child: (fields) => accessLogOf(log.child(fields), mode),
  };
}

/** What an operator should see by default; 404 is not a failure. */
function isFailure(status: number): boolean {
  return status === 401 || status === 403 || status === 499 || status >= 500;
}

/**
 * Binds each operation to HTTP. Operations validate bodies themselves, because they check first
 * that the queue or the task exists.
 */
export function queueHandlers(
  context: QueueContext,
  load: Pick<Load, 'idle' | 'enter' | 'leave'>,
  identify: (authorization: string | undefined) => Principal,
): QueueHandlers {
  return {
    ...taskHandlers(context),
    ...flowHandlers(context),
    ...deadHandlers(context),
    ...adminHandlers(context),
    ...scheduleHandlers(context),
    ...workerHandlers(context, load),
    ...eventHandlers(context, { load, identify }),
    ...backupHandlers(context),
    getLiveness: () => ({
      status: 200,
      body: getLiveness(),
      headers: { Server: `millrace/${queueVersion()}` },
    }),
    getReadiness: ok(() => getReadiness(context)),
    getOpenapi: () => ({
      status: 200,
      contentType: 'application/yaml',
      content: getOpenapi(),
    }),
  };
}

const accepted = answering(202);
const manyResults = answering(207);
const replayed = { 'Idempotent-Replayed': 'true' };

/** Responds without a body. */
const done =
  <Call>(operation: (call: Call) => Promise<unknown>) =>
  async (call: Call) => {
    await operation(call);
    return { status: 204 as const };
  };

function submitted<Result>({ result, isReplay }: { result: Result; isReplay: boolean }) {
  return isReplay
    ? { status: 202 as const, body: result, headers: replayed }
    : { status: 202 as const, body: result };
}

/** Operations on tasks. */
function taskHandlers(context: QueueContext) {
  return {
    submitTask: async ({ params, principal, body }) =>
      submitted(await submitTask(context, principal, { queue: params.queue, body })),
    submitBatch: manyResults(({ params, principal, body }) =>
      submitBatch(context, principal, { ...params, body }),
    ),
    getTask: ok(({ params, principal, query, headers }) => {
      const leaseToken = headers['X-Queue-Lease-Token'];
      return getTask(context, principal, { ...params, waitMs: query.wait_ms, leaseToken });
    }),
    listTasks: ok(({ params, query }) => listTasks(context, { ...query, ...params })),
    countTasks: ok(({ params, query }) => countTasks(context, { ...query, ...params })),
    updateTask: ok(({ params, principal, body }) =>
      updateTask(context, principal, { ...params, body }),
    ),
    cancelTask: ok(({ params, principal, body }) =>
      cancelTask(context, principal, { ...params, body }),
    ),
    cancelTasks: ok(({ params, principal, body }) =>
      cancelTasks(context, principal, { ...params, body }),
    ),
    runTaskNow: ok(({ params, principal }) => runTaskNow(context, principal, params)),
    getQueueMetrics: ok(({ params, query }) => getQueueMetrics(context, { ...query, ...params })),
    getStats: ok(({ params }) => getStats(context, params)),
  } satisfies Partial<QueueHandlers>;
}

/** Operations on flows, steps and signals. */
function flowHandlers(context: QueueContext) {
  return {
    submitFlow: async ({ principal, body }) =>
      submitted(await submitFlow(context, principal, body)),
    getFlow: ok(({ params, principal }) => getFlow(context, principal, params)),
    recordSteps: ok(({ params, principal, body }) =>
      recordSteps(context, principal, { ...params, body }),
    ),
    sendSignal: accepted(({ params, principal, body }) =>
      sendSignal(context, principal, { ...params, body }),
    ),
    sendQueueSignal: accepted(({ params, body }) => sendQueueSignal(context, { ...params, body })),
    getTaskRun: ok(({ params, principal, headers }) => {
      const leaseToken = headers['X-Queue-Lease-Token'];
      return getTaskRun(context, principal, { ...params, leaseToken });
    }),
    getTaskTree: ok(({ params, principal }) => getTaskTree(context, principal, params)),
  } satisfies Partial<QueueHandlers>;
}

type DeadCall = Call<Served['redriveDlq'] | Served['purgeDlq'], Principal>;

function deadHandlers(context: QueueContext) {
  const act =
    (action: 'redrive' | 'purge') =>
    async ({ params, query, principal, body }: DeadCall) => {
      const request = { ...params, body, action };
      return query.async === true
        ? { status: 202 as const, body: await createJob(context, principal, request) }
        : { status: 200 as const, body: await actOnDead(context, principal, request) };
    };
  return {
    listDlq: ok(({ params, query }) => listDlq(context, { ...query, ...params })),
    listDlqGroups: ok(({ params }) => listDlqGroups(context, params)),
    redriveDlq: act('redrive'),
    purgeDlq: act('purge'),
    listJobs: ok(({ params }) => listJobs(context, params)),
    getJob: ok(({ params, principal }) => getJob(context, principal, params)),
    cancelJob: ok(({ params, principal }) => cancelJob(context, principal, params)),
  } satisfies Partial<QueueHandlers>;
}

function adminHandlers(context: QueueContext) {
  return {
    pauseQueue: done(({ params, principal }) => setQueuePaused(context, principal, params, true)),
    resumeQueue: done(({ params, principal }) => setQueuePaused(context, principal, params, false)),
    listQueues: ok(({ principal }) => listQueues(context, principal)),
    getQueueConfig: async ({ params }) => {
      const config = await getQueueConfig(context, params);
      return { status: 200, body: config, headers: etagOf(config) };
    },
    putQueueConfig: async ({ params, query, headers, principal, body }) => {
      const config = await putQueueConfig(context, principal, {
        queue: params.queue,
        body,
        ifMatch: headers['If-Match'],
        validateOnly: query.validate_only,
      });
      const isWritten = query.validate_only !== true;
      return { status: 200, body: config, ...(isWritten && { headers: etagOf(config) }) };
    },
    deleteQueue: done(({ params, principal }) => deleteQueue(context, principal, params)),
    // A target that fails is a result, not an error.
    testCallback: ok(async ({ params }) =>
      context.delivery.probe(await requireQueue(context, params.queue)),
    ),
    listAudit: ok(({ principal, query }) => listAudit(context, principal, query)),
  } satisfies Partial<QueueHandlers>;
}

function scheduleHandlers(context: QueueContext) {
  return {
    listSchedules: ok(({ params, query }) => listSchedules(context, { ...query, ...params })),
    getSchedule: ok(({ params }) => getSchedule(context, params)),
    putSchedule: ok(({ params, principal, body }) =>
      putSchedule(context, principal, { ...params, body }),
    ),
    deleteSchedule: done(({ params }) => deleteSchedule(context, params)),
    runSchedule: ok(({ params, principal }) => runSchedule(context, principal, params)),
    pauseSchedule: ok(({ params }) => setSchedulePaused(context, params, true)),
    resumeSchedule: ok(({ params }) => setSchedulePaused(context, params, false)),
  } satisfies Partial<QueueHandlers>;
}

function workerHandlers(context: QueueContext, load: Pick<Load, 'idle' | 'enter' | 'leave'>) {
  return {
    claimTasks: async ({ params, principal, body, exchange, signal }) => {
      const request = { queue: params.queue, body, remoteIp: exchange.ip, signal };
      const claimed = await load.idle(() => claimTasks(context, principal, request));
      const { tasks } = claimed;
      if (tasks.length > 0) exchange.onUnsent(() => void handBackTasks(context, tasks));
      return { status: 200, body: claimed };
    },
    settleTasks: manyResults(({ params, body }) => settleTasks(context, { ...params, body })),
    completeTask: ok((call) => completeTask(context, call.principal, settleRequest(call))),
    failTask: ok((call) => failTask(context, call.principal, settleRequest(call))),
    extendTask: ok((call) => extendTask(context, call.principal, settleRequest(call))),
    listWorkers: ok(({ params }) => listWorkers(context, params)),
  } satisfies Partial<QueueHandlers>;
}

type SettleCall = Pick<
  Call<Served['completeTask' | 'failTask' | 'extendTask'], Principal>,
  'params' | 'headers' | 'body'
>;

function settleRequest({ params, headers, body }: SettleCall) {
  // The body of a completion may have the token instead.
  return { ...params, leaseToken: headers['X-Queue-Lease-Token'] ?? '', body };
}

function etagOf({ version }: WireConfig) {
  return { ETag: `"${version}"` };
}

/** The operations that are served; the document also describes the outgoing callback. */
export type Served = Pick<QueueOperations, QueueOperationId>;
export type QueueHandlers = Handlers<Served, Principal>;
