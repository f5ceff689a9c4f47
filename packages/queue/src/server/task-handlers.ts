import type { QueueContext } from '../operations/context.js';
import { countTasks } from '../operations/count-tasks.js';
import { listTasks } from '../operations/list-tasks.js';
import type { QueueHandlers } from './handlers.js';

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
  } satisfies Partial<QueueHandlers>;
}
