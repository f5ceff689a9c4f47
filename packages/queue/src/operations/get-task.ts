import type { QueueSchema } from '@millrace/contract/queue';
import type { TaskStatus } from '../core/task.js';
import type { QueueContext } from './context.js';
import { toFullTask } from './envelope.js';
import { requireTask, type FoundTask } from './find.js';
import type { Principal } from './principal.js';

/** How often the store is asked about a task that may end on another server. */
const pollMs = 1_000;

/** Returns a task, if asked so when it has ended; for a pending one, also what it waits for. */
export async function getTask(
  context: QueueContext,
  caller: Principal,
  { id, waitMs = 0 }: { id: string; waitMs?: number | undefined },
): Promise<QueueSchema<'Task'>> {
  let found = await requireTask(context, caller, id, 'submitter');
  if (waitMs > 0 && !hasEnded(found.task.status))
    found = await ended(context, caller, found, waitMs);
  const { task, queue } = found;
  const full = toFullTask(task, queue);
  if (task.status === 'PENDING') {
    full.waiting_for = await context.delivery.waitingFor(task, queue);
  }
  return full;
}

async function ended(
  context: QueueContext,
  caller: Principal,
  first: FoundTask,
  waitMs: number,
): Promise<FoundTask> {
  const { clock, waits } = context;
  const { id } = first.task;
  const endsAt = clock.monotonic() + waitMs;
  let found = first;
  const check = async () => {
    found = await requireTask(context, caller, id, 'submitter');
    return hasEnded(found.task.status);
  };
  while (waits.isOpen) {
    const leftMs = endsAt - clock.monotonic();
    if (leftMs <= 0) break;
    await waits.until(id, Math.min(leftMs, pollMs), check);
    if (await check()) break;
  }
  return found;
}

function hasEnded(status: TaskStatus): boolean {
  return status === 'SUCCEEDED' || status === 'DEAD';
}
