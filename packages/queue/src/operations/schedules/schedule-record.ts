import type { QueueSchema } from '@millrace/contract/queue';
import type { ScheduleDefinition, ScheduleState } from '../../core/schedule.js';
import type { Row } from '../../storage/port/task-store.js';
import type { QueueContext } from '../base/context.js';
import { timeOrNull } from '../base/envelope.js';
import { requireQueue } from '../base/find.js';
import { fail } from '../base/refusal.js';

/** A schedule as stored. */
export interface StoredSchedule {
  row: Row;
  definition: ScheduleDefinition;
  state: ScheduleState;
}

export interface ScheduleRequest {
  queue: string;
  schedule: string;
}

export async function requireSchedule(
  context: QueueContext,
  request: ScheduleRequest,
): Promise<StoredSchedule> {
  await requireQueue(context, request.queue);
  const found = await findSchedule(context, request);
  if (found) return found;
  throw scheduleNotFound(request);
}

export async function findSchedule(
  { store }: QueueContext,
  { queue, schedule: key }: ScheduleRequest,
): Promise<StoredSchedule | undefined> {
  const range = { table: 'schedule', queue, key } as const;
  const [row] = await store.listRows({ ...range, hasBodies: true });
  return row && toStored(row);
}

export function scheduleNotFound({ queue, schedule }: ScheduleRequest): Error {
  return fail(
    'SCHEDULE_NOT_FOUND',
    `The queue ${queue} has no schedule ${schedule}; create it with PUT .../schedules/${schedule}.`,
  );
}

export function toStored(row: Row): StoredSchedule {
  return { row, definition: row.body as ScheduleDefinition, state: row.value as ScheduleState };
}

/** A schedule as the API shows it. */
export function toWireSchedule({
  row,
  definition,
  state,
}: StoredSchedule): QueueSchema<'Schedule'> {
  const { cron, every_ms, ...rest } = definition;
  return {
    name: row.key,
    queue: row.queue,
    ...(cron === undefined ? { every_ms: every_ms! } : { cron }),
    ...rest,
    next_run_at: timeOrNull(state.nextRunAt),
    last_run_at: timeOrNull(state.lastRunAt),
    last_task_id: state.lastTaskId,
    paused: state.paused,
    version: state.version,
  };
}
