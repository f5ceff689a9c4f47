import type { QueueSchema } from '@millrace/contract/queue';
import { type FieldError, messageOf, Refusal } from '@millrace/kit/errors';
import { hasRoom, scheduledTask } from '../background/index.js';
import type { Queue } from '../core/queue.js';
import {
  newScheduleState,
  nextRun,
  type ScheduleDefinition,
  type ScheduleState,
  withPause,
  withRuns,
} from '../core/schedule.js';
import { keyAfter, type NewTask, removalOf, type Row } from '../storage/port/task-store.js';
import { readOnlyFaults, timeOrNull } from './base/bodies.js';
import {
  type Principal,
  type QueueContext,
  queueNotFound,
  requireQueue,
  retryOnConflict,
} from './base/context.js';
import { type CursorScope, staleCursor } from './base/cursors.js';
import { fail, failBody } from './base/refusal.js';
import { newTask, queueFull } from './submit.js';

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
