import type { Queue } from '../../core/queue.js';
import type { FullTask } from '../../core/task.js';
import type { QueueContext } from './context.js';
import { hasGrant, type Principal } from './principal.js';
import { fail } from './refusal.js';

export async function requireQueue({ store }: QueueContext, name: string): Promise<Queue> {
  const queue = await store.getQueue(name);
  if (queue) return queue;
  throw queueNotFound(name);
}

export function queueNotFound(name: string): Error {
  return fail(
    'QUEUE_NOT_FOUND',
    `There is no queue ${name}; an admin can create it with PUT .../config.`,
  );
}

export interface FoundTask {
  task: FullTask;
  queue: Queue;
}

/** The task and its queue, if the caller has a grant there and may act on it. */
export async function requireTask(
  { store }: QueueContext,
  caller: Principal,
  id: string,
  authorize?: (task: FullTask) => void,
): Promise<FoundTask> {
  const found = await store.getTask(id.toUpperCase());
  // Others do not learn that the id exists.
  if (!found || 'purgedAt' in found || !hasGrant(caller, found.queue)) throw taskNotFound(id);
  authorize?.(found);
  const queue = await store.getQueue(found.queue);
  // The queue was deleted in between, and the task with it.
  if (!queue) throw taskNotFound(id);
  return { task: found, queue };
}

export function taskNotFound(id: string): Error {
  return fail('TASK_NOT_FOUND', `There is no task ${id}; it may have been purged or expired.`);
}
