import type { Facts } from '@millrace/contract/lists';
import * as queueLists from '@millrace/contract/lists/queue';
import type { QueueSchema } from '@millrace/contract/queue';
import { systemClock } from '@millrace/kit/clock';
import { UsageError } from '@millrace/kit/errors';
import { durationOf, parseJson } from '../base/arguments.js';
import { factsText } from '../base/list-text.js';
import type { Flags, Tools } from '../base/tools.js';
import { queueApi, type QueueFlags } from './api.js';
import { readConfigFile } from './config-file.js';
import { payloadText } from './task-view.js';

type Schedule = QueueSchema<'Schedule'>;
const { nextRunText, scheduleState, scheduleTimes } = queueLists;

type ScheduleSetFlags = QueueFlags &
  Flags<'cron every timezone handler payload overlap catchUp jitter description'>;

export async function showSchedule(
  queue: string,
  name: string,
  flags: QueueFlags,
  tools: Tools,
): Promise<void> {
  const api = queueApi(flags, tools);
  const { body: schedule } = await api.call('getSchedule', { queue, schedule: name });
  tools.terminal.show(schedule, (out) =>
    factsText(scheduleFacts(schedule), systemClock.now(), out),
  );
}

/** A schedule: when it runs, and the task that it submits. */
function scheduleFacts(schedule: Schedule): Facts {
  const { task, next_run_at: next, last_run_at: last } = schedule;
  return [
    ['schedule', schedule.name],
    ['queue', schedule.queue],
    ['state', scheduleState(schedule)],
    ['when', scheduleTimes(schedule)],
    ['next', next === null ? '-' : [next, ' (', { due: next }, ')']],
    ['last', last === null ? 'never' : `${last} (task ${schedule.last_task_id})`],
    ['overlap', schedule.overlap],
    ['catch-up', schedule.catch_up],
    ['jitter', { ms: schedule.jitter_ms, none: 'none' }],
    ['handler', task.handler_ref],
    ['payload', payloadText(task)],
    ...Object.entries(task.headers ?? {}).map(
      ([name, value]) => ['header', `${name}: ${value}`] as const,
    ),
    ['priority', task.priority === undefined ? null : String(task.priority)],
    ['group', task.group_key ?? null],
    ['description', schedule.description || null],
  ];
}

export async function setSchedule(
  queue: string,
  name: string,
  file: string | undefined,
  flags: ScheduleSetFlags,
  tools: Tools,
): Promise<void> {
  const { terminal } = tools;
  const body = file === undefined ? bodyOf(flags) : await fileBody(file, flags, terminal);
  const { body: written } = await queueApi(flags, tools).call('putSchedule', {
    queue,
    schedule: name,
    body,
  });
  terminal.show(written, () => `${nextRunText({ ...written, name })}\n`);
}

const needs = "cron: '0 9 * * *' and task: {handler_ref: mail.digest}";

async function fileBody(
  file: string,
  flags: ScheduleSetFlags,
  terminal: Tools['terminal'],
): Promise<object> {
  const { url: _url, tokenFile: _file, ...own } = flags;
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
