import type { QueueSchema } from '@millrace/contract/queue';
import type { QueueContext } from './context.js';
import { toWholeTask } from './envelope.js';
import { requireTask } from './find.js';
import { requireGrant, type Principal } from './principal.js';

/** Returns a task; for a pending one, also what it waits for. */
export async function getTask(
  context: QueueContext,
  caller: Principal,
  { id, leaseToken }: { id: string; leaseToken?: string | undefined },
): Promise<QueueSchema<'Task'>> {
  const { task, queue } = await requireTask(context, id, (found) => {
    const { queue: name, lease } = found;
    const isHeld = lease?.token === leaseToken && (lease?.expiresAt ?? 0) > context.clock.now();
    if (!isHeld || !caller.grants.allows(name, 'worker')) requireGrant(caller, name, 'submitter');
  });
  const whole = toWholeTask(task, queue);
  if (task.status === 'PENDING') {
    whole.waiting_for = await context.delivery.waitingFor(task, queue);
  }
  return whole;
}
