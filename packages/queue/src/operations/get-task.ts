import type { QueueSchema } from '@millrace/contract/queue';
import type { TaskStatus } from '../core/task.js';
import type { QueueContext } from './base/context.js';
import { toFullTask } from './base/envelope.js';
import { requireTask, type FoundTask } from './base/find.js';
import { requireGrant, type Principal } from './base/principal.js';

/** How often the store is asked about a task that may end on another server. */
const pollMs = 1_000;

export interface GetTaskRequest {
  id: string;
  leaseToken?: string | undefined;
  waitMs?: number | undefined;
}

/** Returns a task, if asked so when it has ended; for a pending one, also what it waits for. */
export async function getTask(
  context: QueueContext,
  caller: Principal,
  request: GetTaskRequest,
): Promise<QueueSchema<'Task'>> {
  const { waitMs = 0 } = request;
  let found = await findTask(context, caller, request);
  if (waitMs > 0 && !hasEnded(found.task.status)) {
    found = await ended(context, caller, request, found);
  }
  const { task, queue } = found;
  const full = toFullTask(task, queue);
  if (task.status === 'PENDING') {
    full.waiting_for = await context.delivery.waitingFor(task, queue);
  }
  return full;
}

function findTask(
  context: QueueContext,
  caller: Principal,
  { id, leaseToken }: GetTaskRequest,
): Promise<FoundTask> {
  return requireTask(context, caller, id, (found) => {
    const { queue: name, lease } = found;
    const isHeld = lease?.token === leaseToken && (lease?.expiresAt ?? 0) > context.clock.now();
    if (!isHeld || !caller.grants.allows(name, 'worker')) requireGrant(caller, name, 'submitter');
  });
}

async function ended(
  context: QueueContext,
  caller: Principal,
  request: GetTaskRequest,
  first: FoundTask,
): Promise<FoundTask> {
  const { clock, waits } = context;
  const { id } = first.task;
  const endsAt = clock.monotonic() + (request.waitMs ?? 0);
  let found = first;
  const check = async () => {
    found = await findTask(context, caller, request);
    return hasEnded(found.task.status);
  };
  while (waits.isOpen) {
    const leftMs = endsAt - clock.monotonic();
    if (leftMs <= 0) break;
    await waits.until(id, caller.principal, Math.min(leftMs, pollMs), check);
    if (await check()) break;
  }
  return found;
}

function hasEnded(status: TaskStatus): boolean {
  return status === 'SUCCEEDED' || status === 'DEAD';
}
