import type { QueueSchema } from '@millrace/contract/queue';
import { systemClock } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';
import { humanDuration } from '@millrace/kit/units';
import type { Tools } from '../base/tools.js';
import { printable } from '../render/text.js';
import { queueApi, type QueueApi, type QueueFlags } from './api.js';
import {
  checkBatchFlags,
  submissionOf,
  waitOf,
  type Submission,
  type SubmitFlags,
} from './submission.js';
import { lastErrorText, waitingText } from './task-view.js';
import { rest } from '../base/rest.js';
import { patiently } from './waiting.js';

type Task = QueueSchema<'Task'>;
type SubmitResult = QueueSchema<'SubmitResult'>;

/** Submits a task, or a file of tasks. */
export async function submit(
  queue: string,
  handler: string | undefined,
  stdin: string | undefined,
  flags: QueueFlags & SubmitFlags,
  tools: Tools,
): Promise<void> {
  if (flags.batch !== undefined) {
    checkBatchFlags(handler, flags);
    const { submitFile } = await import('./batching.js');
    return submitFile(queueApi(flags, tools), { queue, file: flags.batch }, tools);
  }
  const wait = waitOf(flags);
  const task = await submissionOf(handler, stdin, flags, tools.terminal);
  await submitTask(queueApi(flags, tools), { queue, task, wait }, tools);
}

interface SubmitOptions {
  queue: string;
  task: Submission;
  /** How long to wait for the end of the task; undefined: do not wait. */
  wait: number | undefined;
}

export async function submitTask(
  api: QueueApi,
  { queue, task, wait }: SubmitOptions,
  tools: Tools,
): Promise<void> {
  const { interrupted } = tools.lifecycle;
  const work = () => api.call('submitTask', { queue, body: task });
  const { body, header } = await patiently(work, interrupted).catch((error: unknown) => {
    throw repeatable(error, task);
  });
  const isReplay = header('idempotent-replayed') === 'true';
  if (wait === undefined || 'purged' in body) {
    tools.terminal.show(body, () => storedText(body, isReplay));
    return;
  }
  const ended = await waitForEnd(api, body.id, wait, interrupted);
  if (ended.status === 'DEAD') tools.exitWith(1);
  tools.terminal.show(ended, () => `${endText(ended)}\n`);
}

/** It is unknown whether the task was stored; repeating with its id is safe. */
function repeatable(error: unknown, { id }: Submission): unknown {
  if (!(error instanceof Refusal)) return error;
  const { code, detail, extra } = error;
  if (code !== 'UNAVAILABLE' && code !== 'STORAGE_UNAVAILABLE') return error;
  return new Refusal(code, `${detail} Repeat it safely with --id ${id}.`, extra);
}

function storedText(body: SubmitResult, isReplay: boolean): string {
  const { id, queue, status } = body;
  if ('purged' in body) {
    return (
      `${id} was submitted before, ended ${status} and was deleted; its id is remembered for ` +
      'a day, so nothing runs.\n'
    );
  }
  if (isReplay) return `${id} was submitted before and is ${status}; nothing new was stored.\n`;
  const due = Date.parse(body.next_attempt_at ?? '') - systemClock.now();
  const when = due > 1000 ? `; it is due in ${humanDuration(due)}` : '';
  return `Submitted ${id} to ${queue}${when}.\n`;
}

const firstPollMs = 50;
const maxPollMs = 2_000;

async function waitForEnd(
  api: QueueApi,
  id: string,
  patienceMs: number,
  signal: AbortSignal,
): Promise<Task> {
  const endsAt = systemClock.monotonic() + patienceMs;
  for (let pollMs = firstPollMs; ; pollMs = Math.min(maxPollMs, pollMs * 1.5)) {
    const { body: task } = await patiently(() => api.call('getTask', { id }), signal);
    if (task.status === 'SUCCEEDED' || task.status === 'DEAD') return task;
    const leftMs = endsAt - systemClock.monotonic();
    if (leftMs <= 0) {
      throw new Refusal(
        'TIMEOUT',
        `${id} is still ${task.status}${waitingText(task)}. Check it with \`ctl queue get ` +
          `${id}\`.`,
      );
    }
    await rest(Math.min(pollMs, leftMs), signal);
  }
}

function endText(task: Task): string {
  const took = Date.parse(task.completed_at ?? task.dead_at ?? '') - Date.parse(task.created_at);
  const tries = task.total_attempts === 1 ? '1 attempt' : `${task.total_attempts} attempts`;
  const head = `${task.id} ${task.status} after ${tries} in ${humanDuration(took)}`;
  if (task.status !== 'DEAD' || !task.last_error) return `${head}.`;
  return `${head} (${task.dead_reason}): ${printable(lastErrorText(task))}`;
}
