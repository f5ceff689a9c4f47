import type { QueueSchema } from '@millrace/contract/queue';
import { hasRoom, scheduledTask } from '../../background/index.js';
import { withPause, withRuns, type ScheduleState } from '../../core/schedule.js';
import { type NewTask, removalOf } from '../../storage/port/task-store.js';
import type { QueueContext } from '../base/context.js';
import { requireQueue } from '../base/find.js';
import type { Principal } from '../base/principal.js';
import { queueFull } from '../submit-task.js';
import { retryOnConflict } from '../base/retry-on-conflict.js';
import {
  requireSchedule,
  scheduleNotFound,
  toWireSchedule,
  type ScheduleRequest,
  type StoredSchedule,
} from './schedule-record.js';

export async function deleteSchedule(
  context: QueueContext,
  request: ScheduleRequest,
): Promise<void> {
  await requireQueue(context, request.queue);
  const { queue, schedule: key } = request;
  const removals = [removalOf({ table: 'schedule', queue, key })];
  const result = await context.store.writeRows({ removals, now: context.clock.now() });
  if (result.kind !== 'written' || result.removed === 0) throw scheduleNotFound(request);
}

/** A pause that is repeated changes nothing. */
export async function setSchedulePaused(
  context: QueueContext,
  request: ScheduleRequest,
  paused: boolean,
): Promise<QueueSchema<'Schedule'>> {
  const written = await retryOnConflict('The schedule', async () => {
    const found = await requireSchedule(context, request);
    if (found.state.paused === paused) return found;
    const state = withPause(found.definition, found.state, paused, context.clock.now());
    return write(context, found, state);
  });
  context.background.schedulesChanged();
  return toWireSchedule(written);
}

/** Submits the task of the schedule now, whatever its pause and overlap say. */
export async function runSchedule(
  context: QueueContext,
  caller: Principal,
  request: ScheduleRequest,
): Promise<QueueSchema<'Schedule'>> {
  const queue = await requireQueue(context, request.queue);
  const written = await retryOnConflict('The schedule', async () => {
    const found = await requireSchedule(context, request);
    const now = context.clock.now();
    const run = { id: context.random.ulid(now), at: now, dueAt: now };
    const task = scheduledTask(found.definition, queue, run, caller.principal);
    // Checked first: the write of the schedule would go through without its task.
    if (!(await hasRoom(context.store, queue))) throw queueFull(queue);
    return write(context, found, withRuns(found.state, [run]), [task]);
  });
  return toWireSchedule(written);
}

async function write(
  { store, clock, observer }: QueueContext,
  { row, definition }: StoredSchedule,
  value: ScheduleState,
  tasks?: readonly NewTask[],
): Promise<StoredSchedule | 'conflict'> {
  const { table, queue, key, revision: ifRevision } = row;
  const now = clock.now();
  const puts = [{ table, queue, key, ifRevision, value }];
  const result = await store.writeRows({ puts, tasks, now });
  // A deleted schedule or queue is found missing by the next try.
  if (result.kind !== 'written') return 'conflict';
  if (tasks) observer.scheduled(tasks, result.inserted, now);
  return { row: result.rows[0]!, definition, state: value };
}
