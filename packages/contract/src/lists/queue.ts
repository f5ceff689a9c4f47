/** The lists of the queue. */
import type { QueueSchema } from '../queue.js';
import { counted, toned, type Facts, type List, type Tone, type Value } from './list.js';

type Task = QueueSchema<'Task'>;
type Schedule = QueueSchema<'Schedule'>;
type Job = QueueSchema<'Job'>;

/** How to see the next page. */
export const moreText = (cursor: string) =>
  cursor === '' ? '' : `There are more. Continue with --cursor ${cursor}`;

export const queues: List<QueueSchema<'QueueListItem'>> = {
  columns: [
    { title: 'Queue', value: ({ name }) => name },
    { title: 'State', value: ({ summary }) => queueState(summary) },
    { title: 'Pending', value: ({ summary }) => summary.pending },
    { title: 'Delayed', value: ({ summary }) => summary.delayed ?? 0 },
    { title: 'In flight', value: ({ summary }) => summary.in_flight },
    { title: 'DLQ', value: ({ summary }) => summary.dlq_depth },
    { title: 'Oldest', value: ({ summary }) => ({ ms: summary.oldest_pending_age_ms, none: '-' }) },
    { title: 'Callback', value: ({ summary }) => summary.callback_url ?? 'pull' },
  ],
  empty: 'No queues yet. Create one with `ctl queue create NAME --pull`.',
};

type StateFields = Pick<QueueSchema<'QueueSummary'>, 'paused' | 'state' | 'breaker'>;

/** The state of a queue in a few words. */
export function queueState({ paused, state, breaker }: StateFields): Value {
  if (paused) return { text: 'paused', tone: 'warn' };
  if (state === 'no_worker') return { text: 'no_worker', tone: 'bad' };
  if (breaker === 'open') return { text: 'circuit open', tone: 'bad' };
  if (breaker === 'half_open') return { text: 'circuit half open', tone: 'warn' };
  return { text: 'running', tone: 'ok' };
}

type Breaker = QueueSchema<'HandlerBreaker'>;

/** `open, next probe at 2026-03-02T10:00:00.000Z` */
export function breakerText({ state, next_probe_at: at }: Breaker): string {
  const word = state.replace('_', ' ');
  return at === null ? word : `${word}, next probe at ${at}`;
}

const taskTones = { PENDING: 'warn', IN_FLIGHT: 'strong', SUCCEEDED: 'ok', DEAD: 'bad' } as const;

export const tasks: List<QueueSchema<'ListedTask'>> = {
  columns: [
    { title: 'Task', value: ({ id }) => id },
    { title: 'Status', value: ({ status }) => toned(status, taskTones) },
    { title: 'Age', value: ({ created_at: time }) => ({ time }) },
    { title: 'Attempts', value: ({ total_attempts: attempts }) => attempts },
    { title: 'Handler', value: ({ handler_ref: handler }) => handler },
    { title: 'State', value: taskState, yields: true },
  ],
  empty: 'No tasks.',
};

const waits: Readonly<Record<QueueSchema<'WaitingFor'>, string>> = {
  time: 'not due yet',
  paused: 'waits: the queue is paused',
  concurrency: 'waits for a free slot',
  rate_limit: 'waits for the rate limit',
  circuit_open: 'waits for the circuit breaker',
  group: 'waits for its group',
  no_worker: 'no worker is connected',
  dispatch: 'ready',
  dependencies: 'waits for its dependencies',
  timer: 'suspended',
  signal: 'waits for a signal',
  tasks: 'waits for other tasks',
};

/** What a pending task waits for, or how a task ended. */
function taskState(task: QueueSchema<'ListedTask'>): Value {
  if (task.status === 'DEAD') return `${task.dead_reason}: ${task.last_error?.message ?? ''}`;
  if (task.status !== 'PENDING') return '';
  const isTimed =
    (task.waiting_for === 'time' || task.waiting_for === 'timer') && task.next_attempt_at !== null;
  return isTimed ? ['due ', { due: task.next_attempt_at }] : waits[task.waiting_for ?? 'dispatch'];
}

/** Minimum terminal width for the messages of handlers. */
const wide = 110;

export const deadTasks: List<Task> = {
  columns: [
    { title: 'Task', value: ({ id }) => id },
    { title: 'Died', value: ({ dead_at: time }) => ({ time }) },
    { title: 'Attempts', value: ({ total_attempts: attempts }) => attempts },
    { title: 'Error', value: ({ last_error: error }) => ({ text: errorText(error), tone: 'bad' }) },
    { title: 'Handler', value: ({ handler_ref: handler }) => handler, yields: true },
    {
      title: 'Message',
      value: ({ last_error: error }) => error?.message ?? '',
      minWidth: wide,
      yields: true,
    },
  ],
  empty: 'No dead tasks.',
};

function errorText(error: Task['last_error']): string {
  if (!error) return '';
  return error.http_status === null ? error.error_type : `${error.error_type} ${error.http_status}`;
}

export const deadGroups: List<QueueSchema<'DlqGroup'>> = {
  columns: [
    { title: 'Tasks', value: ({ count }) => count },
    { title: 'Error', value: ({ error_type: text }) => ({ text, tone: 'bad' }) },
    { title: 'HTTP', value: ({ http_status: status }) => (status === null ? '-' : String(status)) },
    { title: 'Handler', value: ({ handler_ref: handler }) => handler, yields: true },
    { title: 'First', value: ({ first_seen: time }) => ({ time }) },
    { title: 'Last', value: ({ last_seen: time }) => ({ time }) },
    { title: 'Example', value: ({ sample_id: id }) => id },
  ],
  empty: 'No dead tasks.',
  footer: (groups) => {
    const total = groups.reduce((sum, { count }) => sum + count, 0);
    return `${counted(total, 'task')} in ${counted(groups.length, 'group')}.`;
  },
};

export const workers: List<QueueSchema<'Worker'>> = {
  columns: [
    { title: 'Worker', value: ({ worker }) => worker },
    { title: 'Principal', value: ({ principal }) => principal },
    { title: 'Address', value: ({ remote_ip: address }) => address ?? 'in process' },
    { title: 'Seen', value: ({ last_seen_at: since }) => ({ since, suffix: ' ago' }) },
    { title: 'In flight', value: ({ in_flight: count }) => count },
    { title: 'Claimed', value: ({ claimed }) => claimed },
    { title: 'Completed', value: ({ completed }) => completed },
    { title: 'Failed', value: ({ failed }) => failed },
  ],
  empty: 'No worker was seen in the last 10 minutes.',
};

const jobTones: Readonly<Record<Job['status'], Tone | undefined>> = {
  running: undefined,
  done: 'ok',
  failed: 'bad',
  cancelled: 'warn',
};

function jobStatus({ status }: Job): Value {
  const tone = jobTones[status];
  return tone === undefined ? status : { text: status, tone };
}

export const jobs: List<Job> = {
  columns: [
    { title: 'Job', value: ({ id }) => id },
    { title: 'Action', value: ({ action }) => action },
    { title: 'Status', value: jobStatus },
    { title: 'Tasks', value: ({ count }) => count },
    { title: 'Created', value: ({ created_at: time }) => ({ time }) },
    { title: 'Finished', value: ({ finished_at: time }) => ({ time }) },
  ],
  empty: 'No jobs. Start one with `ctl queue redrive` or `ctl queue purge` and --async.',
};

export function jobFacts(job: Job): Facts {
  return [
    ['job', job.id],
    ['queue', job.queue],
    ['action', job.action],
    ['selector', JSON.stringify(job.selector)],
    ['status', jobStatus(job)],
    ['tasks', String(job.count)],
    ['created', job.created_at],
    ['finished', job.finished_at ?? '-'],
  ];
}

export const schedules: List<Schedule> = {
  columns: [
    { title: 'Schedule', value: ({ name }) => name },
    { title: 'State', value: scheduleState },
    { title: 'When', value: scheduleTimes },
    { title: 'Next', value: ({ next_run_at: due }) => ({ due }) },
    { title: 'Last', value: ({ last_run_at: time }) => ({ time, none: 'never' }) },
    { title: 'Handler', value: ({ task }) => task.handler_ref },
  ],
  empty: 'No schedules yet. Create one with `ctl queue schedule set QUEUE NAME FILE`.',
};

export function scheduleState({ paused }: Schedule): Value {
  return paused ? { text: 'paused', tone: 'warn' } : { text: 'active', tone: 'ok' };
}

export function scheduleTimes({ cron, every_ms: everyMs, timezone }: Schedule): Value {
  if (cron === undefined) return ['every ', { ms: everyMs! }];
  return timezone === 'UTC' ? cron : `${cron} ${timezone}`;
}

/** `digest runs next at ...` */
export function nextRunText({ name, paused, next_run_at: next }: Schedule): string {
  return paused || next === null ? `${name} is paused.` : `${name} runs next at ${next}.`;
}

/** The columns of the audit log on a terminal. */
export const audit: List<QueueSchema<'AuditRecord'>> = {
  columns: [
    { title: 'Seq', value: ({ seq }) => seq },
    { title: 'Time', value: ({ at: time }) => ({ time, exactFrom: wide }) },
    { title: 'Principal', value: ({ principal }) => principal },
    { title: 'Action', value: ({ action }) => action },
    { title: 'Queue', value: ({ queue }) => queue },
    { title: 'Tasks', value: ({ count }) => (count === null ? '' : String(count)) },
    { title: 'Selection', value: ({ selector }) => selectorText(selector), wraps: true },
  ],
  empty: 'No audit records.',
};

/** `error_type=HTTP_5XX rate_per_second=50`, `3 ids`, `all`. */
function selectorText(selector: QueueSchema<'AuditRecord'>['selector']): string {
  if (selector === null) return '';
  const { ids, filter, ...rest } = selector as Record<string, unknown>;
  const pairs = Object.entries({ ...(filter as object | undefined), ...rest });
  const words = pairs.map(([name, value]) => `${name}=${String(value)}`);
  if (Array.isArray(ids)) words.unshift(ids.length === 1 ? String(ids[0]) : `${ids.length} ids`);
  else if (Object.keys(filter ?? {}).length === 0) words.unshift('all');
  return words.join(' ');
}

export function probeFacts(result: QueueSchema<'CallbackTestResult'>): Facts {
  return [
    ['delivered', result.delivered ? { text: 'yes', tone: 'ok' } : { text: 'no', tone: 'bad' }],
    ['status', result.http_status === null ? 'no response' : String(result.http_status)],
    ['took', { ms: result.duration_ms }],
    ['error', result.error_type],
    ['message', result.message],
  ];
}
