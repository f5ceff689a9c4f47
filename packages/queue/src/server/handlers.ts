import type { QueueOperationId, QueueOperations } from '@millrace/contract/queue';
import type { Call, Handlers } from '@millrace/kit/http';
import { completeTask } from '../operations/complete-task.js';
import { deleteQueue } from '../operations/delete-queue.js';
import { extendTask } from '../operations/extend-task.js';
import { failTask } from '../operations/fail-task.js';
import { getLiveness } from '../operations/get-liveness.js';
import { getOpenapi } from '../operations/get-openapi.js';
import { getQueueConfig } from '../operations/get-queue-config.js';
import { getReadiness } from '../operations/get-readiness.js';
import { getStats } from '../operations/get-stats.js';
import { getTask } from '../operations/get-task.js';
import { listAudit } from '../operations/list-audit.js';
import { listDlq } from '../operations/list-dlq.js';
import { listDlqGroups } from '../operations/list-dlq-groups.js';
import { listQueues } from '../operations/list-queues.js';
import { pauseQueue } from '../operations/pause-queue.js';
import type { Principal } from '../operations/principal.js';
import { purgeDlq } from '../operations/purge-dlq.js';
import { putQueueConfig } from '../operations/put-queue-config.js';
import type { WireConfig } from '../operations/queue-config.js';
import { redriveDlq } from '../operations/redrive-dlq.js';
import { resumeQueue } from '../operations/resume-queue.js';
import { submitBatch } from '../operations/submit-batch.js';
import { submitTask } from '../operations/submit-task.js';
import { testCallback } from '../operations/test-callback.js';
import type { QueueContext } from '../operations/context.js';
import { taskControlHandlers } from './task-handlers.js';

/** The operations that are served; the document also describes the outgoing callback. */
export type Served = Pick<QueueOperations, QueueOperationId>;
export type QueueHandlers = Handlers<Served, Principal>;

/**
 * Binds each operation to HTTP. Operations validate bodies themselves, because they check first
 * that the queue or the task exists.
 */
export function queueHandlers(context: QueueContext): QueueHandlers {
  return {
    ...taskHandlers(context),
    ...taskControlHandlers(context),
    ...deadHandlers(context),
    ...adminHandlers(context),
    ...settleHandlers(context),
    getLiveness: () => ({ status: 200, body: getLiveness() }),
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
    getTask: async ({ params, principal, query }) => ({
      status: 200,
      body: await getTask(context, principal, { id: params.id, waitMs: query.wait_ms }),
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
      handle: async ({ params, principal, body }) => {
        const request = { queue: params.queue, body };
        return { status: 200, body: await redriveDlq(context, principal, request) };
      },
    },
    purgeDlq: {
      checkBody: false,
      handle: async ({ params, principal, body }) => {
        const request = { queue: params.queue, body };
        return { status: 200, body: await purgeDlq(context, principal, request) };
      },
    },
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
