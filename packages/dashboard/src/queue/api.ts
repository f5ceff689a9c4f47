import { createQueueApi } from '@millrace/client';
import type { QueueSchema } from '@millrace/contract/queue';
import { queryOptions } from '@tanstack/react-query';
import { authorizedFetch } from '../api/client.js';

/** The queue server through the daemon's proxy, which adds the queue's own token. */
const queueServer = createQueueApi({
  url: `${location.origin}/api/v1/proxy/queue`,
  fetch: authorizedFetch,
});

export type QueueItem = QueueSchema<'QueueListItem'>;
export type QueueConfig = QueueSchema<'QueueConfig'>;
export type Task = QueueSchema<'Task'>;
export type Group = QueueSchema<'DlqGroup'>;
export type Filter = QueueSchema<'SelectorFilter'>;
export type Selector = { ids: string[] } | { filter: Filter };
/** A task in a list: without payload and attempts. */
export type TaskRow = QueueSchema<'ListedTask'>;
export type Schedule = QueueSchema<'Schedule'>;
export type Job = QueueSchema<'Job'>;
export type QueueMetrics = QueueSchema<'QueueMetrics'>;
export type MetricsPoint = QueueSchema<'QueueMetricsPoint'>;

/** What the task list can be narrowed to. */
export interface TaskFilter {
  status: Task['status'][];
  handler_ref?: string | undefined;
  group_key?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
}

// The queue server has no event stream, so the pages poll.
const refetchInterval = 3_000;

export const queueQueries = {
  all: () =>
    queryOptions({
      queryKey: ['queues'],
      queryFn: () => queueServer.call('listQueues'),
      refetchInterval,
    }),
  config: (queue: string) =>
    queryOptions({
      queryKey: ['queue-config', queue],
      queryFn: () => queueServer.call('getQueueConfig', { path: { queue } }),
      refetchInterval: false,
    }),
  task: (id: string) =>
    queryOptions({
      queryKey: ['queue-task', id],
      queryFn: () => queueServer.call('getTask', { path: { id } }),
      refetchInterval: ({ state: { data } }) =>
        data?.status === 'PENDING' || data?.status === 'IN_FLIGHT' ? 1_000 : false,
    }),
  /** Steps, waits and children. */
  history: (id: string, isOpen: boolean) =>
    queryOptions({
      queryKey: ['task-history', id, isOpen],
      queryFn: async () => {
        const path = { id };
        const [run, children] = await Promise.all([
          queueServer.call('getTaskRun', { path }),
          queueServer.call('getTaskTree', { path }),
        ]);
        return { run, children, tree: children.root };
      },
      placeholderData: (before) => before,
      refetchInterval: isOpen ? 1_000 : false,
    }),
  flow: (id: string) =>
    queryOptions({
      queryKey: ['flow', id],
      queryFn: () => queueServer.call('getFlow', { path: { flow_id: id } }),
      refetchInterval: ({ state: { data } }) =>
        data?.tasks.some(({ ended_at: end }) => end === null) ? 2_000 : false,
    }),
  groups: (queue: string) =>
    queryOptions({
      queryKey: ['dead-groups', queue],
      queryFn: async () => (await queueServer.call('listDlqGroups', { path: { queue } })).groups,
      refetchInterval: 10_000,
    }),
  count: (queue: string, filter: TaskFilter) =>
    queryOptions({
      queryKey: ['task-count', queue, filter],
      queryFn: () => queueServer.call('countTasks', { path: { queue }, query: queryOf(filter) }),
      refetchInterval,
    }),
  workers: (queue: string) =>
    queryOptions({
      queryKey: ['workers', queue],
      queryFn: async () => (await queueServer.call('listWorkers', { path: { queue } })).workers,
      refetchInterval,
    }),
  schedules: (queue: string) =>
    queryOptions({
      queryKey: ['schedules', queue],
      queryFn: () => allSchedules(queue),
      refetchInterval,
    }),
  /** One schedule with its payload, which lists leave out; read again for every edit. */
  schedule: (queue: string, schedule: string) =>
    queryOptions({
      queryKey: ['schedule', queue, schedule],
      queryFn: () => queueServer.call('getSchedule', { path: { queue, schedule } }),
      gcTime: 0,
    }),
  jobs: (queue: string) =>
    queryOptions({
      queryKey: ['jobs', queue],
      queryFn: async () => (await queueServer.call('listJobs', { path: { queue } })).jobs,
      refetchInterval,
    }),
  metrics: (queue: string, since: string, step?: '10s' | '1m' | '15m') =>
    queryOptions({
      queryKey: ['queue-metrics', queue, since, step],
      queryFn: () =>
        queueServer.call('getQueueMetrics', {
          path: { queue },
          query: { since, ...(step !== undefined && { step }) },
        }),
      refetchInterval: 10_000,
    }),
};

/** Without the parts that are empty. */
function queryOf(filter: TaskFilter) {
  const set = Object.entries(filter).filter(([, value]) => value);
  return Object.fromEntries(set) as { [Name in keyof TaskFilter]: NonNullable<TaskFilter[Name]> };
}

/** All pages; the server sends at most 500 schedules in one. */
async function allSchedules(queue: string): Promise<Schedule[]> {
  const schedules: Schedule[] = [];
  let cursor = '';
  do {
    const query = cursor === '' ? {} : { cursor };
    const page = await queueServer.call('listSchedules', { path: { queue }, query });
    schedules.push(...page.schedules);
    // A server of 0.1.0 has one page and no cursor.
    cursor = page.next_cursor || '';
  } while (cursor !== '');
  return schedules;
}

export type Order = 'newest' | 'oldest' | 'next';

export const listTasks = (
  queue: string,
  filter: TaskFilter,
  order: Order,
  cursor: string,
): Promise<QueueSchema<'TaskPage'>> => {
  const query = { ...queryOf(filter), order, limit: 200, ...(cursor !== '' && { cursor }) };
  return queueServer.call('listTasks', { path: { queue }, query });
};

export type CancelSelector =
  { ids: string[] } | { filter: Omit<TaskFilter, 'status'> & { status: 'PENDING' } };

export const cancelTasks = (
  queue: string,
  selector: CancelSelector,
  dry_run: boolean,
): Promise<QueueSchema<'SelectorResult'>> =>
  queueServer.call('cancelTasks', {
    path: { queue },
    body: { ...selector, dry_run } as QueueSchema<'CancelSelector'>,
  });

export const cancelTask = (id: string, reason: string): Promise<unknown> =>
  queueServer.call('cancelTask', { path: { id }, body: reason === '' ? {} : { reason } });
export const sendSignal = (id: string, name: string, payload: unknown): Promise<unknown> =>
  queueServer.call('sendSignal', {
    path: { id },
    body: { name, ...(payload !== undefined && { payload }) },
  });
export const runNow = (id: string): Promise<unknown> =>
  queueServer.call('runTaskNow', { path: { id } });
export const setPriority = (id: string, priority: number): Promise<unknown> =>
  queueServer.call('updateTask', { path: { id }, body: { priority } });

export const putSchedule = (queue: string, schedule: string, body: object): Promise<unknown> =>
  queueServer.call('putSchedule', {
    path: { queue, schedule },
    body: body as QueueSchema<'ScheduleInput'>,
  });
export const deleteSchedule = (queue: string, schedule: string): Promise<unknown> =>
  queueServer.call('deleteSchedule', { path: { queue, schedule } });

const scheduleOperations = {
  'run-now': 'runSchedule',
  pause: 'pauseSchedule',
  resume: 'resumeSchedule',
} as const;
export type ScheduleAction = keyof typeof scheduleOperations;

export const actOnSchedule = (
  queue: string,
  schedule: string,
  action: ScheduleAction,
): Promise<unknown> => queueServer.call(scheduleOperations[action], { path: { queue, schedule } });

/** Redrives or purges in the background. */
export async function startJob(
  queue: string,
  action: 'redrive' | 'purge',
  body: Selector & Redrive,
): Promise<Job> {
  const operation = action === 'redrive' ? 'redriveDlq' : 'purgeDlq';
  const result = await queueServer.call(operation, {
    path: { queue },
    query: { async: true },
    body,
  });
  if ('job' in result) return result.job;
  throw new Error('The server started no job');
}

export const cancelJob = (id: string): Promise<unknown> =>
  queueServer.call('cancelJob', { path: { id } });

/** Checks a config as the server would write it, and returns it with every default. */
export const validateConfig = (queue: string, body: object): Promise<QueueConfig> =>
  queueServer.call('putQueueConfig', {
    path: { queue },
    query: { validate_only: true },
    body: body as QueueSchema<'QueueConfigInput'>,
  });

/** Writes a config; a version makes it fail if the config has changed since. */
export const putConfig = (
  queue: string,
  body: object,
  version: number | undefined,
): Promise<QueueConfig> =>
  queueServer.call('putQueueConfig', {
    path: { queue },
    body: body as QueueSchema<'QueueConfigInput'>,
    ...(version !== undefined && { headers: { 'if-match': `"${version}"` } }),
  });

export interface DeadPage {
  tasks: DeadRow[];
  next: string;
}

/** A dead task without its payload and attempts, which can be megabytes. */
export type DeadRow = Pick<
  Task,
  'id' | 'handler_ref' | 'dead_at' | 'dead_reason' | 'total_attempts' | 'redrive_count'
> & {
  errorType: string;
  /** The response to a callback where there was one, else the message of the failure. */
  message: string;
  httpStatus: number | null;
};

type BrowseFilter = Omit<Filter, 'http_status'>;

export async function readDead(
  queue: string,
  filter: BrowseFilter,
  cursor: string,
): Promise<DeadPage> {
  const query = { ...filter, limit: 200, ...(cursor !== '' && { cursor }) };
  const { tasks, next_cursor: next } = await queueServer.call('listDlq', {
    path: { queue },
    query,
  });
  return { tasks: tasks.map(deadRow), next };
}

function deadRow(task: Task): DeadRow {
  const { id, handler_ref, dead_at, dead_reason, total_attempts, redrive_count } = task;
  const { last_error, attempts } = task;
  return {
    id,
    handler_ref,
    dead_at,
    dead_reason,
    total_attempts,
    redrive_count,
    errorType: last_error?.error_type ?? dead_reason ?? '',
    message:
      (last_error?.http_status && attempts.at(-1)?.response_snippet) || (last_error?.message ?? ''),
    httpStatus: last_error?.http_status ?? null,
  };
}

export const setPaused = (queue: string, paused: boolean): Promise<unknown> =>
  queueServer.call(paused ? 'pauseQueue' : 'resumeQueue', { path: { queue } });

export const submitTask = (
  queue: string,
  body: QueueSchema<'SubmitTaskRequest'>,
): Promise<QueueSchema<'SubmitResult'>> =>
  queueServer.call('submitTask', { path: { queue }, body });

export const probeCallback = (queue: string): Promise<QueueSchema<'CallbackTestResult'>> =>
  queueServer.call('testCallback', { path: { queue } });

export interface Redrive {
  dry_run?: boolean;
  rate_per_second?: number;
}

/** A call without `async` starts no job. */
function counted(
  result: QueueSchema<'SelectorResult'> | QueueSchema<'JobResult'>,
): QueueSchema<'SelectorResult'> {
  if ('count' in result) return result;
  throw new Error('The server started a job that was not asked for');
}

export const redrive = (
  queue: string,
  selector: Selector,
  more: Redrive,
): Promise<QueueSchema<'SelectorResult'>> =>
  queueServer.call('redriveDlq', { path: { queue }, body: { ...selector, ...more } }).then(counted);

export const purge = (
  queue: string,
  selector: Selector,
  more: Pick<Redrive, 'dry_run'>,
): Promise<QueueSchema<'SelectorResult'>> =>
  queueServer.call('purgeDlq', { path: { queue }, body: { ...selector, ...more } }).then(counted);
