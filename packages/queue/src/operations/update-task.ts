import type { FieldError } from '@millrace/kit/errors';
import type { UpdateTaskChange } from '../storage/port/task-changes.js';
import type { QueueContext } from './base/context.js';
import { toEnvelope, type Envelope } from './base/envelope.js';
import { requireTask, taskNotFound, type FoundTask } from './base/find.js';
import { readRunAt } from './new-task.js';
import { requireGrant, type Principal } from './base/principal.js';
import { fail, failBody } from './base/refusal.js';

/** Changes the priority or the time of a pending task. */
export async function updateTask(
  context: QueueContext,
  caller: Principal,
  { id, body: given }: { id: string; body: unknown },
): Promise<Envelope> {
  const { clock, checks } = context;
  const found = await requireTask(context, caller, id, (task) =>
    requireGrant(caller, task.queue, 'operator'),
  );
  const body = checks.update.read(given);
  const { priority, run_at } = body;
  const now = clock.now();
  const faults: FieldError[] = [];
  const dueAt = run_at === undefined ? undefined : readRunAt(run_at, now, faults);
  if (faults.length > 0) throw failBody('INVALID_TASK', faults);
  const selector = { ids: [found.task.id], ...body };
  return changePending(context, caller, found, {
    action: 'update',
    now,
    dueAt,
    priority,
    selector,
  });
}

/** Makes a pending task due. */
export async function runTaskNow(
  context: QueueContext,
  caller: Principal,
  { id }: { id: string },
): Promise<Envelope> {
  const found = await requireTask(context, caller, id, (task) =>
    requireGrant(caller, task.queue, 'operator'),
  );
  const now = context.clock.now();
  const selector = { ids: [found.task.id] };
  // One that is due already keeps its place among the others.
  const dueAt = Math.min(found.task.dueAt ?? now, now);
  return changePending(context, caller, found, { action: 'run_now', now, dueAt, selector });
}

async function changePending(
  { store }: QueueContext,
  caller: Principal,
  { task, queue }: FoundTask,
  change: Omit<UpdateTaskChange, 'id' | 'by'>,
): Promise<Envelope> {
  const result = await store.updateTask({ ...change, id: task.id, by: caller.principal });
  if (result.kind === 'not_found') throw taskNotFound(task.id);
  if (result.kind === 'changed') return toEnvelope(result.task, queue);
  const { status } = result.task;
  const hint = status === 'DEAD' ? ' Redrive it to run it again.' : '';
  throw fail(
    'TASK_NOT_PENDING',
    `The task ${task.id} is ${status}; only a PENDING task can be changed.${hint}`,
  );
}
