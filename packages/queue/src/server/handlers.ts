import type { Call } from '@millrace/kit/http';
import { claimTasks, handBackTasks } from '../operations/claim-tasks.js';
import { completeTask } from '../operations/complete-task.js';
import { deleteQueue } from '../operations/delete-queue.js';
import { extendTask } from '../operations/extend-task.js';
import { failTask } from '../operations/fail-task.js';
import { getLiveness } from '../operations/get-liveness.js';
import { getOpenapi } from '../operations/get-openapi.js';
import { getQueueConfig } from '../operations/get-queue-config.js';
import { getReadiness } from '../operations/get-readiness.js';
import { getQueueMetrics } from '../operations/get-queue-metrics.js';
import { getStats } from '../operations/get-stats.js';
import { getTask } from '../operations/get-task.js';
import { cancelJob } from '../operations/jobs/cancel-job.js';
import { createJob } from '../operations/jobs/create-job.js';
import { getJob, listJobs } from '../operations/jobs/read-jobs.js';
import { listAudit } from '../operations/list-audit.js';
import { actOnDead, listDlq, listDlqGroups } from '../operations/dead-letters.js';
import { listQueues } from '../operations/list-queues.js';
import { listWorkers } from '../operations/list-workers.js';
import { pauseQueue } from '../operations/pause-queue.js';
import type { Principal } from '../operations/base/principal.js';
import { putQueueConfig } from '../operations/put-queue-config.js';
import type { WireConfig } from '../operations/queue-config.js';
import { resumeQueue } from '../operations/resume-queue.js';
import {
  deleteSchedule,
  runSchedule,
  setSchedulePaused,
} from '../operations/schedules/change-schedule.js';
import { putSchedule } from '../operations/schedules/put-schedule.js';
import { getSchedule, listSchedules } from '../operations/schedules/read-schedules.js';
import { settleTasks } from '../operations/settle-tasks.js';
import { submitBatch } from '../operations/submit-batch.js';
import { submitTask } from '../operations/submit-task.js';
import { testCallback } from '../operations/test-callback.js';
import type { QueueContext } from '../operations/base/context.js';
import type { Load } from '../operations/base/load.js';
import type { QueueHandlers, Served } from './handler-types.js';
import { taskControlHandlers } from './task-handlers.js';
import { queueVersion } from './version.js';

/**
 * Binds each operation to HTTP. Operations validate bodies themselves, because they check first
 * that the queue or the task exists.
 */
export function queueHandlers(context: QueueContext, load: Load): QueueHandlers {
  return {
    ...taskHandlers(context),
    ...taskControlHandlers(context),
    ...deadHandlers(context),
    ...adminHandlers(context),
    ...settleHandlers(context),
    ...scheduleHandlers(context),
    ...workerHandlers(context, load),
    ...jobHandlers(context),
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

const replayed = { 'Idempotent-Replayed': 'true' };

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

function workerHandlers(context: QueueContext, load: Load) {
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
  return { id: params.id, leaseToken: headers['X-Queue-Lease-Token'], body };
}

function etagOf({ version }: WireConfig) {
  return { ETag: `"${version}"` };
}
