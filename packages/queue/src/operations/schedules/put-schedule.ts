import type { QueueSchema } from '@millrace/contract/queue';
import { messageOf, Refusal, type FieldError } from '@millrace/kit/errors';
import type { Queue } from '../../core/queue.js';
import {
  newScheduleState,
  nextRun,
  type ScheduleDefinition,
  type ScheduleState,
} from '../../core/schedule.js';
import type { QueueContext } from '../base/context.js';
import { queueNotFound, requireQueue } from '../base/find.js';
import { newTask } from '../new-task.js';
import type { Principal } from '../base/principal.js';
import { readOnlyFaults } from '../base/read-only.js';
import { fail, failBody } from '../base/refusal.js';
import { retryOnConflict } from '../base/retry-on-conflict.js';
import { findSchedule, toWireSchedule, type ScheduleRequest } from './schedule-record.js';

/** Creates a schedule or replaces it. */
export async function putSchedule(
  context: QueueContext,
  caller: Principal,
  { body, ...request }: ScheduleRequest & { body: unknown },
): Promise<QueueSchema<'Schedule'>> {
  const { store, clock, background } = context;
  const { queue: queueName, schedule: name } = request;
  const queue = await requireQueue(context, queueName);
  const { definition, readOnly } = readSchedule(context, queue, body);
  const bytes = Buffer.byteLength(JSON.stringify(definition));
  const write = async () => {
    const before = await findSchedule(context, request);
    const current = before ? toWireSchedule(before) : { name, queue: queueName, paused: false };
    const faults = readOnlyFaults(readOnly, { ...current }, 'schedule');
    if (faults.length > 0) throw failBody('INVALID_SCHEDULE', faults);
    await checkRoom(context, request, bytes);
    const now = clock.now();
    const by = caller.principal;
    const state = { ...newScheduleState(definition, before, { now, by }), bytes };
    const ifRevision = before?.row.revision ?? 0;
    const key = { table: 'schedule', queue: queueName, key: name } as const;
    const puts = [{ ...key, ifRevision, body: definition, value: state }];
    const result = await store.writeRows({ puts, now });
    if (result.kind === 'queue_not_found') throw queueNotFound(queueName);
    return result.kind === 'conflict' ? 'conflict' : { row: result.rows[0]!, state };
  };
  // One at a time, so that concurrent writes cannot pass the limits together.
  const written = await context.scheduleWrites.run(queueName, () =>
    retryOnConflict('The schedule', write),
  );
  background.schedulesChanged();
  return toWireSchedule({ ...written, definition });
}

/** Refuses a schedule for which its queue has no room. */
async function checkRoom(
  { store, scheduleLimits }: QueueContext,
  { queue, schedule: name }: ScheduleRequest,
  bytes: number,
): Promise<void> {
  const { maxCount, maxBytes } = scheduleLimits;
  const states = await store.listRows({ table: 'schedule', queue });
  const others = states.filter(({ key }) => key !== name);
  const isNew = others.length === states.length;
  if (isNew && others.length >= maxCount) {
    const detail = `The queue ${queue} has ${others.length} schedules, the limit is ${maxCount}.`;
    throw fail('INVALID_SCHEDULE', `${detail} Delete one first.`);
  }
  const sizes = others.map(({ value }) => (value as ScheduleState).bytes ?? 0);
  const total = sizes.reduce((sum, size) => sum + size, bytes);
  if (total <= maxBytes) return;
  throw fail(
    'INVALID_SCHEDULE',
    `The schedules of the queue ${queue} would have ${total} bytes, the limit is ${maxBytes}. ` +
      'Make payloads smaller or delete a schedule.',
  );
}

interface ReadSchedule {
  definition: ScheduleDefinition;
  readOnly: object;
}

function readSchedule(context: QueueContext, queue: Queue, body: unknown): ReadSchedule {
  const {
    name,
    queue: ownQueue,
    next_run_at,
    last_run_at,
    last_task_id,
    paused,
    version,
    ...rest
  } = context.checks.schedule.read(body);
  const definition = rest as ScheduleDefinition;
  const faults = [...timeZoneFaults(definition), ...timingFaults(definition, context.clock.now())];
  if (faults.length > 0) throw failBody('INVALID_SCHEDULE', faults);
  checkTask(queue, definition.task, context.clock.now());
  const times = { next_run_at, last_run_at, last_task_id };
  return { definition, readOnly: { name, queue: ownQueue, ...times, paused, version } };
}

function timeZoneFaults({ timezone }: ScheduleDefinition): FieldError[] {
  try {
    Intl.DateTimeFormat('en-US', { timeZone: timezone });
    return [];
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return [{ pointer: '/timezone', message: `is not a time zone: ${timezone}` }];
  }
}

function timingFaults({ cron, every_ms }: ScheduleDefinition, now: number): FieldError[] {
  const pointer = '/cron';
  try {
    if (nextRun({ cron, every_ms, timezone: 'UTC' }, now, now) !== null) return [];
    return [{ pointer, message: 'never matches a time' }];
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return [{ pointer, message: messageOf(error) }];
  }
}

/** The rules of a submit that the schema cannot express. */
function checkTask(queue: Queue, task: ScheduleDefinition['task'], now: number): void {
  try {
    newTask({ read: () => task }, task, { queue, now, by: '', newId: () => '' });
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'INVALID_TASK') throw error;
    const faults = error.extra.errors ?? [];
    throw failBody(
      'INVALID_SCHEDULE',
      faults.map(({ pointer, message }) => ({ pointer: `/task${pointer}`, message })),
    );
  }
}
