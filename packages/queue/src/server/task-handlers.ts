import type { QueueContext } from '../operations/base/context.js';
import { cancelTask } from '../operations/cancel-task.js';
import { cancelTasks } from '../operations/cancel-tasks.js';
import { countTasks } from '../operations/count-tasks.js';
import { listTasks } from '../operations/list-tasks.js';
import { runTaskNow, updateTask } from '../operations/update-task.js';
import type { QueueHandlers } from './handler-types.js';

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
