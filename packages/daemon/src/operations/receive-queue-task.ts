import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Delivery } from '../queue-callback/index.js';
import type { DaemonContext } from './context.js';

/** Spawns an agent for a task of the queue; the result is reported to the queue later. */
export function receiveQueueTask(
  { queueTasks }: Pick<DaemonContext, 'queueTasks'>,
  delivery: Delivery,
): Promise<DaemonSchema<'QueueTaskAccepted'>> {
  return queueTasks.receive(delivery);
}
