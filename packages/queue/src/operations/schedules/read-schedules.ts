import type { QueueSchema } from '@millrace/contract/queue';
import type { QueueContext } from '../context.js';
import { requireQueue } from '../find.js';
import {
  requireSchedule,
  toStored,
  toWireSchedule,
  type ScheduleRequest,
} from './schedule-record.js';

export async function getSchedule(
  context: QueueContext,
  request: ScheduleRequest,
): Promise<QueueSchema<'Schedule'>> {
  return toWireSchedule(await requireSchedule(context, request));
}

export async function listSchedules(
  context: QueueContext,
  { queue }: { queue: string },
): Promise<QueueSchema<'ScheduleList'>> {
  await requireQueue(context, queue);
  const records = await context.store.listRecords({ kind: 'schedule', queue });
  return { schedules: records.map((record) => toWireSchedule(toStored(record))) };
}
