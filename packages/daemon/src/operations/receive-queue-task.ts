import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Delivery } from '../queue-callback/index.js';
import type { DaemonContext } from './context.js';

/** Has an agent work on a task of the queue, which is told later what came of it. */
export function receiveQueueTask(
  { queueTasks }: Pick<DaemonContext, 'queueTasks'>,
  delivery: Delivery,
): Promise<DaemonSchema<'QueueTaskAccepted'>> {
  return queueTasks.receive(delivery);
}
