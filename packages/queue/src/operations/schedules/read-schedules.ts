import type { QueueSchema } from '@millrace/contract/queue';
import { keyAfter, type Row } from '../../storage/port/task-store.js';
import type { QueueContext } from '../base/context.js';
import { staleCursor, type CursorScope } from '../base/cursors.js';
import { requireQueue } from '../base/find.js';
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

export interface ListSchedulesRequest {
  queue: string;
  limit?: number | undefined;
  cursor?: string | undefined;
}

const defaultLimit = 500;
/** A page ends when the stored schedules that were read for it have this many bytes. */
const maxReadBytes = 4 * 2 ** 20;
const maxChunk = 64;

/** One page of schedules without payloads. They are read in chunks, since they may be large. */
export async function listSchedules(
  context: QueueContext,
  { queue: name, limit = defaultLimit, cursor = '' }: ListSchedulesRequest,
): Promise<QueueSchema<'ScheduleList'>> {
  const { store, cursors } = context;
  const { incarnation } = await requireQueue(context, name);
  const scope: CursorScope = { list: 'schedules', filter: { queue: name }, incarnation };
  const opened = cursor === '' ? [undefined] : cursors.open(scope, cursor);
  if (!opened) throw staleCursor();
  let after = opened[0] as string | undefined;
  let readBytes = 0;
  const schedules: QueueSchema<'Schedule'>[] = [];
  for (let chunk = 1; ; chunk = Math.min(2 * chunk, maxChunk)) {
    const left = limit - schedules.length;
    const isFull = left <= 0 || readBytes > maxReadBytes;
    const wanted = isFull ? 1 : Math.min(chunk, left);
    const from = after === undefined ? undefined : keyAfter(after);
    const range = { table: 'schedule', queue: name, from, limit: wanted } as const;
    const rows = await store.listRows({ ...range, hasBodies: true });
    if (isFull && rows.length > 0) {
      return { schedules, next_cursor: cursors.seal(scope, [after!]) };
    }
    for (const row of rows) {
      readBytes += sizeOf(row);
      schedules.push(withoutPayload(row));
    }
    if (rows.length < wanted) return { schedules, next_cursor: '' };
    after = rows.at(-1)!.key;
  }
}

function sizeOf({ body }: Row): number {
  return JSON.stringify(body).length;
}

function withoutPayload(row: Row): QueueSchema<'Schedule'> {
  const { task, ...schedule } = toWireSchedule(toStored(row));
  const { payload: _payload, ...rest } = task;
  return { ...schedule, task: rest };
}
