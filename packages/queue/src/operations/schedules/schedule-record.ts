import type { QueueSchema } from '@millrace/contract/queue';
import type { ScheduleDefinition, ScheduleState } from '../../core/schedule.js';
import type { RecordState, StoredRecord } from '../../storage/port/stored-record.js';
import type { QueueContext } from '../base/context.js';
import { timeOrNull } from '../base/envelope.js';
import { requireQueue } from '../base/find.js';
import { fail } from '../base/refusal.js';

/** A schedule as stored. */
export interface StoredSchedule {
  record: RecordState;
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
  { queue, schedule: name }: ScheduleRequest,
): Promise<StoredSchedule | undefined> {
  const [record] = await store.listRecords({ kind: 'schedule', queue, name });
  return record && toStored(record);
}

export function scheduleNotFound({ queue, schedule }: ScheduleRequest): Error {
  return fail(
    'SCHEDULE_NOT_FOUND',
    `The queue ${queue} has no schedule ${schedule}; create it with PUT .../schedules/${schedule}.`,
  );
}

export function toStored(record: StoredRecord): StoredSchedule {
  return {
    record,
    definition: record.body as ScheduleDefinition,
    state: record.state as ScheduleState,
  };
}

/** A schedule as the API shows it. */
export function toWireSchedule({
  record,
  definition,
  state,
}: StoredSchedule): QueueSchema<'Schedule'> {
  const { cron, every_ms, ...rest } = definition;
  return {
    name: record.name,
    queue: record.queue,
    ...(cron === undefined ? { every_ms: every_ms! } : { cron }),
    ...rest,
    next_run_at: timeOrNull(state.nextRunAt),
    last_run_at: timeOrNull(state.lastRunAt),
    last_task_id: state.lastTaskId,
    paused: state.paused,
    version: state.version,
  };
}
