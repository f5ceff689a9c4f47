import type { QueueSchema } from '@millrace/contract/queue';
import { systemClock } from '@millrace/kit/clock';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { isUlid } from '@millrace/kit/ulid';
import { humanAge, humanBytes, humanDuration } from '@millrace/kit/units';
import type { Tools } from '../base/tools.js';
import type { Tone } from '../render/paint.js';
import { renderTable, renderFacts, wrapped, type Cell, type Sheet } from '../render/table.js';
import { printableLines } from '../render/text.js';
import { queueApi, type QueueFlags } from './api.js';

type Task = QueueSchema<'Task'>;
type Attempt = QueueSchema<'Attempt'>;

export async function showTask(
  id: string,
  flags: QueueFlags & { payload?: boolean; raw?: boolean },
  tools: Tools,
): Promise<void> {
  const { payload, raw } = flags;
  if (raw && !payload) throw new UsageError('--raw needs --payload.');
  // The server would answer with the regular expression of an id.
  if (!isUlid(id)) {
    const why = 'is not a task id such as 01JD3Z8Q4M7X2N5V9RTBKWCH6E.';
    throw new Refusal('TASK_NOT_FOUND', `"${id}" ${why}`);
  }
  const { body: task } = await queueApi(flags, tools).call('getTask', { id });
  const { terminal } = tools;
  const { out, json } = terminal;
  if (payload && !json) {
    const bytes = payloadOf(task);
    // A pipe gets the bytes; a terminal would execute escape sequences.
    if (raw || !out.isScreen) out.writeRaw(bytes);
    else out.write(`${printableLines(bytes.toString('utf8')).replace(/\n$/, '')}\n`);
    return;
  }
  terminal.show(task, () => taskSheet(task, systemClock.now(), out));
}

/** A task: its fields, then the result of each attempt. */
export function taskSheet(task: Task, now: number, sheet: Sheet): string {
  const facts = renderFacts(factsOf(task, now), sheet);
  return task.attempts.length === 0 ? facts : `${facts}\n${attemptsTable(task, sheet)}`;
}

const tones: Readonly<Record<Task['status'], Tone>> = {
  PENDING: 'warn',
  IN_FLIGHT: 'strong',
  SUCCEEDED: 'ok',
  DEAD: 'bad',
};

function factsOf(task: Task, now: number): Cell[][] {
  const when = (time: string) => `${time} (${humanAge(Date.parse(time), now)})`;
  const status = `${task.status}${task.dead_reason === null ? '' : ` (${task.dead_reason})`}`;
  const rows: Cell[][] = [
    ['task', task.id],
    ['queue', task.queue],
    ['handler', task.handler_ref],
    ['status', { text: `${status}${waitingText(task)}`, tone: tones[task.status] }],
    ['attempts', attemptsText(task)],
    ['payload', payloadText(task)],
  ];
  for (const [name, value] of Object.entries(task.headers))
    rows.push(['header', `${name}: ${value}`]);
  rows.push(['priority', String(task.priority)]);
  if (task.group_key !== null) rows.push(['group', task.group_key]);
  rows.push(['submitted', `${when(task.created_at)} by ${task.submitted_by}`]);
  const times: [string, string | null][] = [
    ['due', task.next_attempt_at],
    ['expires', task.expires_at],
    ['lease until', task.lease_expires_at],
    ['succeeded', task.completed_at],
    ['died', task.dead_at],
  ];
  for (const [name, time] of times) if (time !== null) rows.push([name, when(time)]);
  if (task.breaker) rows.push(['breaker', breakerText(task.breaker, when)]);
  if (task.progress) rows.push(['progress', progressText(task.progress, now)]);
  if (task.result_dropped === true) rows.push(['result', 'too large, not kept']);
  else if (task.result !== null && task.result !== undefined) {
    rows.push(['result', cut(JSON.stringify(task.result))]);
  }
  if (task.last_error) rows.push(['last error', lastErrorText(task)]);
  return rows;
}

/** `half open, next probe at 2026-05-04 09:30:00`. */
function breakerText(
  { state, next_probe_at: at }: QueueSchema<'HandlerBreaker'>,
  when: (time: string) => string,
): string {
  return `${state.replace('_', ' ')}${at === null ? '' : `, next probe at ${when(at)}`}`;
}

type Progress = NonNullable<Task['progress']>;

/** `40 %: 4 of 10 (3s)`. */
function progressText({ percent, message, at }: Progress, now: number): string {
  const share = percent === null ? '' : `${percent} %`;
  const text = [share, message ?? ''].filter(Boolean).join(': ');
  return `${text} (${humanAge(Date.parse(at), now)})`.trimStart();
}

function cut(text: string): string {
  return text.length > maxPreview ? `${text.slice(0, maxPreview)}… (all of it with --json)` : text;
}

function attemptsText(task: Task): string {
  const { attempt, max_attempts: most, total_attempts: total, redrive_count: redrives } = task;
  const here = `${attempt} of ${most}`;
  if (redrives === 0) return here;
  return (
    `${here} since ${redrives === 1 ? 'its redrive' : `redrive ${redrives}`}, ${total} in ` +
    'total'
  );
}

const maxPreview = 200;

/** Size, type and beginning of a payload. */
export function payloadText(task: { payload?: string; payload_content_type?: string }): string {
  const bytes = payloadOf(task);
  if (bytes.length === 0) return 'none';
  const head = `${humanBytes(bytes.length)} of ${task.payload_content_type ?? 'unknown type'}`;
  const text = textOf(bytes.subarray(0, maxPreview));
  if (text === undefined) return head;
  return `${head}: ${text}${bytes.length > maxPreview ? '…' : ''}`;
}

/** Undefined for binary data. The last character may be cut in half. */
function textOf(bytes: Buffer): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true });
    return /[^\P{Cc}\s]/u.test(text) ? undefined : text;
  } catch {
    return undefined;
  }
}

function payloadOf({ payload = '' }: { payload?: string }): Buffer {
  return Buffer.from(payload, 'base64');
}

function attemptsTable({ attempts }: Task, sheet: Sheet): string {
  return renderTable(
    ['ATTEMPT', 'STARTED', 'DURATION', 'OUTCOME', wrapped('REASON')],
    attempts.map(attemptRow),
    sheet,
  );
}

function attemptRow(attempt: Attempt): Cell[] {
  const { outcome } = attempt;
  const tried = attempt.redrive === 0 ? '' : ` (redrive ${attempt.redrive})`;
  return [
    `${attempt.attempt}${tried}`,
    attempt.started_at.slice(0, 19).replace('T', ' '),
    humanDuration(attempt.duration_ms),
    { text: outcome, tone: outcome === 'SUCCEEDED' ? 'ok' : 'bad' },
    attemptErrorText(attempt),
  ];
}

const waits: Readonly<Record<QueueSchema<'WaitingFor'>, string>> = {
  time: 'it is not due yet',
  paused: 'the queue is paused, or its callback URL has left the allowlist',
  concurrency: 'the queue is at its limit of tasks in flight (limits.max_in_flight)',
  rate_limit: 'the queue is at its dispatch rate (limits.dispatch_per_second)',
  circuit_open: 'the handler keeps failing, so the circuit breaker is open',
  group: 'an earlier task of its group is first',
  no_worker: 'no worker is connected; start one with `ctl queue work` or an SDK',
  dispatch: 'it is ready, and runs when its turn comes or a worker claims it',
  dependencies: 'tasks that it depends on have not ended',
  timer: 'it is suspended until a time',
  signal: 'it is suspended until a signal comes (ctl queue signal)',
  tasks: 'it is suspended until other tasks end',
};

/** `: it is not due yet`, or empty if it does not wait. */
export function waitingText({ status, waiting_for: reason }: Task): string {
  return status === 'PENDING' && reason !== undefined ? `: ${waits[reason]}` : '';
}

/** The last error: `HTTP_5XX 503: The callback answered with HTTP 503: no mill here`. */
export function lastErrorText({ last_error: error, attempts }: Task): string {
  if (!error) return '';
  const attempt = attempts.findLast(({ ended_at: end }) => end === error.at);
  return errorText(error, responseMessage(attempt?.response_snippet ?? null));
}

/** Why an attempt failed. */
export function attemptErrorText(attempt: QueueSchema<'Attempt'>): string {
  const { error_type: type, http_status, message, response_snippet: snippet } = attempt;
  if (type === null) return String(http_status ?? '');
  return errorText(
    { error_type: type, http_status, message: message ?? '' },
    responseMessage(snippet),
  );
}

function errorText(
  { error_type: type, http_status: status, message }: Omit<QueueSchema<'LastError'>, 'at'>,
  words: string,
): string {
  const code = status === null ? type : `${type} ${status}`;
  return [code, message, message.includes(words) ? '' : words].filter(Boolean).join(': ');
}

const maxWords = 300;

/** The message in a handler's response: that of a problem, or a line of plain text. */
export function responseMessage(snippet: string | null): string {
  const text = snippet?.trim() ?? '';
  if (text === '' || text.startsWith('<')) return '';
  const words = /^[{[]/.test(text) ? wordsInJson(text) : text.split('\n')[0]!;
  return words.slice(0, maxWords);
}

/** The response may be truncated and therefore not JSON. */
function wordsInJson(text: string): string {
  for (const member of ['detail', 'message', 'error', 'title']) {
    const found = new RegExp(`"${member}"\\s*:\\s*("(?:[^"\\\\]|\\\\.)*")`).exec(text)?.[1];
    if (found === undefined) continue;
    try {
      return JSON.parse(found) as string;
    } catch {
      // Not a JSON string; another member may have one.
    }
  }
  return '';
}
