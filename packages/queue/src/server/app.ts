import { openApiDocument } from '@millrace/contract/documents';
import { queueCodes, type QueueOperationId, type QueueOperations } from '@millrace/contract/queue';
import type { Clock } from '@millrace/kit/clock';
import {
  bindOperations,
  type BoundApp,
  type Call,
  type DocumentSchemas,
  type Handlers,
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
  type Role,
} from '../operations/base/context.js';
import type { Load, Urgency } from '../operations/base/limits.js';
import { fail } from '../operations/base/refusal.js';
import { claimTasks, handBackTasks } from '../operations/claim-tasks.js';
import { actOnDead, listDlq, listDlqGroups } from '../operations/dead-letters.js';
import { getLiveness, getOpenapi, getReadiness } from '../operations/health.js';
import { cancelJob, createJob, getJob, listJobs } from '../operations/jobs.js';
import {
  deleteQueue,
  getQueueConfig,
  listQueues,
  pauseQueue,
  putQueueConfig,
  resumeQueue,
  type WireConfig,
} from '../operations/queues.js';
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
import { testCallback } from '../operations/test-callback.js';
import { StorageUnavailable } from '../storage/port/task-store.js';
import { queueVersion } from './config.js';
import { backupHandlers, eventHandlers } from './event-stream.js';
import { flowHandlers, replayed } from './flow-handlers.js';

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
    ...taskControlHandlers(context),
    ...flowHandlers(context),
    ...deadHandlers(context),
    ...adminHandlers(context),
    ...settleHandlers(context),
    ...scheduleHandlers(context),
    ...workerHandlers(context, load),
    ...jobHandlers(context),
    ...eventHandlers(context, { load, identify }),
    ...backupHandlers(context),
    getLiveness: () => ({
      status: 200,
      body: getLiveness(),
      headers: { Server: `millrace/${queueVersion()}` },
    }),
    getReadiness: async () => ({ status: 200, body: await getReadiness(context) }),
    getOpenapi: () => ({
      status: 200,
      contentType: 'application/yaml',
      content: getOpenapi(),
    }),
  };
}

function taskHandlers(context: QueueContext) {
  return {
    submitTask: {
      checkBody: false,
      handle: async ({ params, principal, body }) => {
        const request = { queue: params.queue, body };
        const { result, isReplay } = await submitTask(context, principal, request);
        return isReplay
          ? { status: 202, body: result, headers: replayed }
          : { status: 202, body: result };
      },
    },
    submitBatch: {
      checkBody: false,
      handle: async ({ params, principal, body }) => {
        const request = { queue: params.queue, body };
        return { status: 207, body: await submitBatch(context, principal, request) };
      },
    },
    getTask: async ({ params, principal, query, headers }) => ({
      status: 200,
      body: await getTask(context, principal, {
        id: params.id,
        waitMs: query.wait_ms,
        leaseToken: headers['X-Queue-Lease-Token'],
      }),
    }),
    getQueueMetrics: async ({ params, query }) => ({
      status: 200,
      body: await getQueueMetrics(context, { ...query, queue: params.queue }),
    }),
    getStats: async ({ params }) => ({ status: 200, body: await getStats(context, params) }),
  } satisfies Partial<QueueHandlers>;
}

function deadHandlers(context: QueueContext) {
  return {
    listDlq: async ({ params, query }) => ({
      status: 200,
      body: await listDlq(context, { ...query, queue: params.queue }),
    }),
    listDlqGroups: async ({ params }) => ({
      status: 200,
      body: await listDlqGroups(context, params),
    }),
    redriveDlq: {
      checkBody: false,
      handle: async ({ params, query, principal, body }) => {
        const request = { queue: params.queue, body };
        if (query.async === true) return startJob(context, principal, request, 'redrive');
        return {
          status: 200,
          body: await actOnDead(context, principal, { action: 'redrive', ...request }),
        };
      },
    },
    purgeDlq: {
      checkBody: false,
      handle: async ({ params, query, principal, body }) => {
        const request = { queue: params.queue, body };
        if (query.async === true) return startJob(context, principal, request, 'purge');
        return {
          status: 200,
          body: await actOnDead(context, principal, { action: 'purge', ...request }),
        };
      },
    },
  } satisfies Partial<QueueHandlers>;
}

async function startJob(
  context: QueueContext,
  principal: Principal,
  request: { queue: string; body: unknown },
  action: 'redrive' | 'purge',
) {
  const body = await createJob(context, principal, { ...request, action });
  return { status: 202, body } as const;
}

function jobHandlers(context: QueueContext) {
  return {
    listJobs: async ({ params }) => ({ status: 200, body: await listJobs(context, params) }),
    getJob: async ({ params, principal }) => ({
      status: 200,
      body: await getJob(context, principal, params),
    }),
    cancelJob: async ({ params, principal }) => ({
      status: 200,
      body: await cancelJob(context, principal, params),
    }),
  } satisfies Partial<QueueHandlers>;
}

function adminHandlers(context: QueueContext) {
  return {
    pauseQueue: async ({ params, principal }) => {
      await pauseQueue(context, principal, params);
      return { status: 204 };
    },
    resumeQueue: async ({ params, principal }) => {
      await resumeQueue(context, principal, params);
      return { status: 204 };
    },
    listQueues: async ({ principal }) => ({
      status: 200,
      body: await listQueues(context, principal),
    }),
    getQueueConfig: async ({ params }) => {
      const config = await getQueueConfig(context, params);
      return { status: 200, body: config, headers: etagOf(config) };
    },
    putQueueConfig: {
      checkBody: false,
      handle: async ({ params, query, headers, principal, body }) => {
        const config = await putQueueConfig(context, principal, {
          queue: params.queue,
          body,
          ifMatch: headers['If-Match'],
          validateOnly: query.validate_only,
        });
        const isWritten = query.validate_only !== true;
        return { status: 200, body: config, ...(isWritten && { headers: etagOf(config) }) };
      },
    },
    deleteQueue: async ({ params, principal }) => {
      await deleteQueue(context, principal, params);
      return { status: 204 };
    },
    testCallback: async ({ params }) => ({
      status: 200,
      body: await testCallback(context, params),
    }),
    listAudit: async ({ principal, query }) => ({
      status: 200,
      body: await listAudit(context, principal, query),
    }),
  } satisfies Partial<QueueHandlers>;
}

function scheduleHandlers(context: QueueContext) {
  return {
    listSchedules: async ({ params, query }) => ({
      status: 200,
      body: await listSchedules(context, { ...query, ...params }),
    }),
    getSchedule: async ({ params }) => ({ status: 200, body: await getSchedule(context, params) }),
    putSchedule: {
      checkBody: false,
      handle: async ({ params, principal, body }) => ({
        status: 200,
        body: await putSchedule(context, principal, { ...params, body }),
      }),
    },
    deleteSchedule: async ({ params }) => {
      await deleteSchedule(context, params);
      return { status: 204 };
    },
    runSchedule: async ({ params, principal }) => ({
      status: 200,
      body: await runSchedule(context, principal, params),
    }),
    pauseSchedule: async ({ params }) => ({
      status: 200,
      body: await setSchedulePaused(context, params, true),
    }),
    resumeSchedule: async ({ params }) => ({
      status: 200,
      body: await setSchedulePaused(context, params, false),
    }),
  } satisfies Partial<QueueHandlers>;
}

function settleHandlers(context: QueueContext) {
  return {
    completeTask: {
      checkBody: false,
      handle: async (call) => ({
        status: 200,
        body: await completeTask(context, call.principal, settleRequest(call)),
      }),
    },
    failTask: {
      checkBody: false,
      handle: async (call) => ({
        status: 200,
        body: await failTask(context, call.principal, settleRequest(call)),
      }),
    },
    extendTask: {
      checkBody: false,
      handle: async (call) => ({
        status: 200,
        body: await extendTask(context, call.principal, settleRequest(call)),
      }),
    },
  } satisfies Partial<QueueHandlers>;
}

function workerHandlers(context: QueueContext, load: Pick<Load, 'idle' | 'enter' | 'leave'>) {
  return {
    claimTasks: {
      checkBody: false,
      handle: async ({ params, principal, body, exchange, signal }) => {
        const request = { queue: params.queue, body, remoteIp: exchange.ip, signal };
        const claimed = await load.idle(() => claimTasks(context, principal, request));
        const { tasks } = claimed;
        if (tasks.length > 0) exchange.onUnsent(() => void handBackTasks(context, tasks));
        return { status: 200, body: claimed };
      },
    },
    settleTasks: {
      checkBody: false,
      handle: async ({ params, body }) => ({
        status: 207,
        body: await settleTasks(context, { queue: params.queue, body }),
      }),
    },
    listWorkers: async ({ params }) => ({
      status: 200,
      body: await listWorkers(context, params),
    }),
  } satisfies Partial<QueueHandlers>;
}

type SettleCall =
  | Call<Served['completeTask'], Principal>
  | Call<Served['failTask'], Principal>
  | Call<Served['extendTask'], Principal>;

function settleRequest({ params, headers, body }: SettleCall) {
  // The body of a completion may have the token instead.
  return { id: params.id, leaseToken: headers['X-Queue-Lease-Token'] ?? '', body };
}

function etagOf({ version }: WireConfig) {
  return { ETag: `"${version}"` };
}

/** Operations that list and change tasks. */
export function taskControlHandlers(context: QueueContext) {
  return {
    listTasks: async ({ params, query }) => ({
      status: 200,
      body: await listTasks(context, { ...query, queue: params.queue }),
    }),
    countTasks: async ({ params, query }) => ({
      status: 200,
      body: await countTasks(context, { ...query, queue: params.queue }),
    }),
    updateTask: {
      checkBody: false,
      handle: async ({ params, principal, body }) => ({
        status: 200,
        body: await updateTask(context, principal, { id: params.id, body }),
      }),
    },
    cancelTask: {
      checkBody: false,
      handle: async ({ params, principal, body }) => ({
        status: 200,
        body: await cancelTask(context, principal, { id: params.id, body }),
      }),
    },
    runTaskNow: async ({ params, principal }) => ({
      status: 200,
      body: await runTaskNow(context, principal, params),
    }),
    cancelTasks: {
      checkBody: false,
      handle: async ({ params, principal, body }) => ({
        status: 200,
        body: await cancelTasks(context, principal, { queue: params.queue, body }),
      }),
    },
  } satisfies Partial<QueueHandlers>;
}

/** The operations that are served; the document also describes the outgoing callback. */
export type Served = Pick<QueueOperations, QueueOperationId>;
export type QueueHandlers = Handlers<Served, Principal>;
