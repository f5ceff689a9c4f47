import type { QueueOperationId, QueueOperations } from '@millrace/contract/queue';
import type { Handlers } from '@millrace/kit/http';
import type { Principal, QueueContext } from '../operations/base/context.js';
import { getFlow, submitFlow } from '../operations/flows.js';
import {
  getTaskRun,
  getTaskTree,
  recordSteps,
  sendQueueSignal,
  sendSignal,
} from '../operations/runs.js';

type FlowHandlers = Partial<Handlers<Pick<QueueOperations, QueueOperationId>, Principal>>;

export const replayed = { 'Idempotent-Replayed': 'true' };

/** Operations on flows, steps and signals. */
export function flowHandlers(context: QueueContext) {
  return {
    submitFlow: {
      checkBody: false,
      handle: async ({ principal, body }) => {
        const { result, isReplay } = await submitFlow(context, principal, body);
        return { status: 202, body: result, ...(isReplay && { headers: replayed }) };
      },
    },
    getFlow: async ({ params, principal }) => ({
      status: 200,
      body: await getFlow(context, principal, params),
    }),
    recordSteps: {
      checkBody: false,
      handle: async ({ params, principal, body }) => ({
        status: 200,
        body: await recordSteps(context, principal, { id: params.id, body }),
      }),
    },
    sendSignal: {
      checkBody: false,
      handle: async ({ params, principal, body }) => ({
        status: 202,
        body: await sendSignal(context, principal, { id: params.id, body }),
      }),
    },
    sendQueueSignal: {
      checkBody: false,
      handle: async ({ params, body }) => ({
        status: 202,
        body: await sendQueueSignal(context, { queue: params.queue, body }),
      }),
    },
    getTaskRun: async ({ params, principal, headers }) => ({
      status: 200,
      body: await getTaskRun(context, principal, {
        id: params.id,
        leaseToken: headers['X-Queue-Lease-Token'],
      }),
    }),
    getTaskTree: async ({ params, principal }) => ({
      status: 200,
      body: await getTaskTree(context, principal, params),
    }),
  } satisfies FlowHandlers;
}
