import type { QueueSchema } from '@millrace/contract/queue';
import { systemClock } from '@millrace/kit/clock';
import { UsageError } from '@millrace/kit/errors';
import { humanDuration } from '@millrace/kit/units';
import { asTyped } from '../base/command-name.js';
import { durationOf, parseJson } from '../base/arguments.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { timeText } from '../render/time.js';
import type { Tools } from '../base/tools.js';
import type { QueueApi } from './api.js';
import { readConfigFile } from './config-file.js';
import { payloadText } from './task-view.js';

type Schedule = QueueSchema<'Schedule'>;
type Shows = Pick<Tools, 'terminal'>;

export interface ScheduleSetFlags {
  cron?: string;
  every?: string;
  timezone?: string;
  handler?: string;
  payload?: string;
  overlap?: string;
  catchUp?: string;
  jitter?: string;
  description?: string;
}

export async function listSchedules(
  api: QueueApi,
  queue: string,
  { terminal }: Shows,
): Promise<void> {
  const schedules = await allSchedules(api, queue);
  const { out, json } = terminal;
  out.write(
    json
      ? `${JSON.stringify({ schedules, next_cursor: '' }, null, 2)}\n`
      : schedulesTable(schedules, systemClock.now(), out),
  );
}

/** All pages. A server of 0.1.0 has one, without a cursor. */
export async function allSchedules(api: QueueApi, queue: string): Promise<Schedule[]> {
  const schedules: Schedule[] = [];
  let cursor: string | undefined;
  do {
    const query = cursor === undefined ? {} : { query: { cursor } };
    const { body } = await api.call('listSchedules', { queue, ...query });
    schedules.push(...body.schedules);
    cursor = body.next_cursor || undefined;
  } while (cursor !== undefined);
  return schedules;
}

export function schedulesTable(schedules: readonly Schedule[], now: number, sheet: Sheet): string {
  if (schedules.length === 0) {
    return asTyped('No schedules yet. Create one with `ctl queue schedule set QUEUE NAME FILE`.\n');
  }
  const titles = ['SCHEDULE', 'STATE', 'WHEN', 'NEXT', 'LAST', 'HANDLER'];
  const rows = schedules.map((schedule): Cell[] => [
    schedule.name,
    schedule.paused ? { text: 'paused', tone: 'warn' } : { text: 'active', tone: 'ok' },
    whenText(schedule),
    schedule.next_run_at === null ? '-' : nextText(Date.parse(schedule.next_run_at), now, sheet),
    schedule.last_run_at === null
      ? 'never'
      : timeText(Date.parse(schedule.last_run_at), now, sheet),
    schedule.task.handler_ref,
  ]);
  return renderTable(
    titles.map((title) => ({ title })),
    rows,
    sheet,
  );
}

export async function showSchedule(
  api: QueueApi,
  { queue, name }: { queue: string; name: string },
  { terminal }: Shows,
): Promise<void> {
  const { body: schedule } = await api.call('getSchedule', { queue, schedule: name });
  const { out, json } = terminal;
  out.write(
    json
      ? `${JSON.stringify(schedule, null, 2)}\n`
      : scheduleSheet(schedule, systemClock.now(), out),
  );
}

/** A schedule: when it runs, and the task that it submits. */
function scheduleSheet(schedule: Schedule, now: number, sheet: Sheet): string {
  const { task, next_run_at: next, last_run_at: last } = schedule;
  const state: Cell = schedule.paused
    ? { text: 'paused', tone: 'warn' }
    : { text: 'active', tone: 'ok' };
  const rows: Cell[][] = [
    ['schedule', schedule.name],
    ['queue', schedule.queue],
    ['state', state],
    ['when', whenText(schedule)],
    ['next', next === null ? '-' : `${next} (${nextText(Date.parse(next), now, sheet)})`],
    ['last', last === null ? 'never' : `${last} (task ${schedule.last_task_id})`],
    ['overlap', schedule.overlap],
    ['catch-up', schedule.catch_up],
    ['jitter', schedule.jitter_ms === 0 ? 'none' : humanDuration(schedule.jitter_ms)],
    ['handler', task.handler_ref],
    ['payload', payloadText(task)],
  ];
  for (const [name, value] of Object.entries(task.headers ?? {}))
    rows.push(['header', `${name}: ${value}`]);
  if (task.priority !== undefined) rows.push(['priority', String(task.priority)]);
  if (task.group_key !== undefined && task.group_key !== null) rows.push(['group', task.group_key]);
  if (schedule.description !== '') rows.push(['description', schedule.description]);
  return renderTable([{ title: '' }, { title: '', overflow: 'wrap' }], rows, sheet);
}

function whenText({ cron, every_ms: everyMs, timezone }: Schedule): string {
  if (cron === undefined) return `every ${humanDuration(everyMs!)}`;
  return timezone === 'UTC' ? cron : `${cron} ${timezone}`;
}

function nextText(at: number, now: number, sheet: Sheet): string {
  if (sheet.utc) return timeText(at, now, sheet);
  return at <= now ? 'now' : `in ${humanDuration(at - now)}`;
}

interface ScheduleSet {
  queue: string;
  name: string;
  file: string | undefined;
  flags: ScheduleSetFlags;
}

export async function setSchedule(
  api: QueueApi,
  { queue, name, file, flags }: ScheduleSet,
  { terminal }: Shows,
): Promise<void> {
  const body = file === undefined ? bodyOf(flags) : await fileBody(file, flags, terminal);
  const { body: written } = await api.call('putSchedule', { queue, schedule: name, body });
  const { out, json } = terminal;
  if (json) out.write(`${JSON.stringify(written, null, 2)}\n`);
  else out.write(`${name} ${nextRunText(written)}\n`);
}

function nextRunText({ paused, next_run_at: next }: Schedule): string {
  return paused || next === null ? 'is paused.' : `runs next at ${next}.`;
}

const needs = "cron: '0 9 * * *' and task: {handler_ref: mail.digest}";

async function fileBody(
  file: string,
  flags: ScheduleSetFlags,
  terminal: Tools['terminal'],
): Promise<object> {
  const {
    url: _url,
    tokenFile: _file,
    ...own
  } = flags as ScheduleSetFlags & Record<string, unknown>;
  if (Object.keys(own).length > 0) {
    throw new UsageError('Give a file, or --cron or --every with --handler, not both.');
  }
  return (await readConfigFile(file, terminal, needs)).config;
}

function bodyOf(flags: ScheduleSetFlags): object {
  const { cron, handler, timezone, payload, overlap, catchUp, description } = flags;
  const everyMs = durationOf(flags.every, '--every');
  if (handler === undefined || (cron === undefined) === (everyMs === undefined)) {
    throw new UsageError('Give a file, or --handler with one of --cron and --every.');
  }
  // Checked here, because a shell may have changed it.
  if (payload !== undefined) parseJson(payload, '--payload');
  const jitterMs = durationOf(flags.jitter, '--jitter');
  return {
    ...(cron === undefined ? { every_ms: everyMs } : { cron }),
    ...(timezone === undefined ? {} : { timezone }),
    task: {
      handler_ref: handler,
      ...(payload === undefined
        ? {}
        : {
            payload: Buffer.from(payload).toString('base64'),
            payload_content_type: 'application/json',
          }),
    },
    ...(overlap === undefined ? {} : { overlap }),
    ...(catchUp === undefined ? {} : { catch_up: catchUp }),
    ...(jitterMs === undefined ? {} : { jitter_ms: jitterMs }),
    ...(description === undefined ? {} : { description }),
  };
}

export async function removeSchedule(
  api: QueueApi,
  { queue, name }: { queue: string; name: string },
  { terminal }: Shows,
): Promise<void> {
  await api.call('deleteSchedule', { queue, schedule: name });
  const { out, json } = terminal;
  out.write(json ? `${JSON.stringify({ deleted: name }, null, 2)}\n` : `Deleted ${name}.\n`);
}

const operations = {
  'run-now': 'runSchedule',
  pause: 'pauseSchedule',
  resume: 'resumeSchedule',
} as const;

export async function changeSchedule(
  api: QueueApi,
  { queue, name, verb }: { queue: string; name: string; verb: keyof typeof operations },
  { terminal }: Shows,
): Promise<void> {
  const { body } = await api.call(operations[verb], { queue, schedule: name });
  const { out, json } = terminal;
  if (json) out.write(`${JSON.stringify(body, null, 2)}\n`);
  else if (verb === 'run-now') out.write(`Submitted ${body.last_task_id}.\n`);
  else out.write(`${name} ${nextRunText(body)}\n`);
}
