import type { QueueSchema } from '@millrace/contract/queue';
import type { QueueContext } from './context.js';
import { toWholeTask } from './envelope.js';
import { requireTask } from './find.js';
import type { Principal } from './principal.js';

/** Returns a task; for a pending one, also what it waits for. */
export async function getTask(
  context: QueueContext,
  caller: Principal,
  { id }: { id: string },
): Promise<QueueSchema<'Task'>> {
  const { task, queue } = await requireTask(context, caller, id, 'submitter');
  const whole = toWholeTask(task, queue);
  if (task.status === 'PENDING') {
    whole.waiting_for = await context.delivery.waitingFor(task, queue);
  }
  return whole;
}
