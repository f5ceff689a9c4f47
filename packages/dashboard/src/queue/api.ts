import { createQueueApi } from '@millrace/client';
import type { QueueSchema } from '@millrace/contract/queue';
import { queryOptions } from '@tanstack/react-query';
import { authorizedFetch } from '../api/client.js';
import { read } from '../api/queries.js';

/** The queue server through the daemon's proxy, which adds the queue's own token. */
export const queueServer = createQueueApi({
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
  all: () => read(['queues'], () => queueServer.call('listQueues'), { refetchInterval }),
  config: (queue: string) =>
    read(['queue-config', queue], () => queueServer.call('getQueueConfig', { path: { queue } }), {
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
    read(
      ['dead-groups', queue],
      async () => (await queueServer.call('listDlqGroups', { path: { queue } })).groups,
      { refetchInterval: 10_000 },
    ),
  count: (queue: string, filter: TaskFilter) =>
    read(
      ['task-count', queue, filter],
      () => queueServer.call('countTasks', { path: { queue }, query: queryOf(filter) }),
      { refetchInterval },
    ),
  workers: (queue: string) =>
    read(
      ['workers', queue],
      async () => (await queueServer.call('listWorkers', { path: { queue } })).workers,
      { refetchInterval },
    ),
  schedules: (queue: string) =>
    read(['schedules', queue], () => allSchedules(queue), { refetchInterval }),
  /** One schedule with its payload, which lists leave out; read again for every edit. */
  schedule: (queue: string, schedule: string) =>
    read(
      ['schedule', queue, schedule],
      () => queueServer.call('getSchedule', { path: { queue, schedule } }),
      { gcTime: 0 },
    ),
  jobs: (queue: string) =>
    read(
      ['jobs', queue],
      async () => (await queueServer.call('listJobs', { path: { queue } })).jobs,
      { refetchInterval },
    ),
  metrics: (queue: string, since: string, step?: '10s' | '1m' | '15m') => {
    const query = { since, ...(step !== undefined && { step }) };
    return read(
      ['queue-metrics', queue, since, step],
      () => queueServer.call('getQueueMetrics', { path: { queue }, query }),
      { refetchInterval: 10_000 },
    );
  },
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

export type BulkAction = 'cancel' | 'redrive' | 'purge';

const bulkOperations = {
  cancel: 'cancelTasks',
  redrive: 'redriveDlq',
  purge: 'purgeDlq',
} as const;

/** Cancels, redrives or purges tasks. A call without `async` starts no job. */
export async function runBulk(
  action: BulkAction,
  queue: string,
  body: (CancelSelector | Selector) & { dry_run?: boolean; rate_per_second?: number },
): Promise<QueueSchema<'SelectorResult'>> {
  const request = { path: { queue }, body: body as Selector };
  const result = await queueServer.call(bulkOperations[action] as 'redriveDlq', request);
  if ('count' in result) return result;
  throw new Error('The server started a job that was not asked for');
}

/** Redrives or purges in the background. */
export async function startJob(
  queue: string,
  action: 'redrive' | 'purge',
  body: Selector,
): Promise<Job> {
  const request = { path: { queue }, query: { async: true }, body };
  const result = await queueServer.call(bulkOperations[action], request);
  if ('job' in result) return result.job;
  throw new Error('The server started no job');
}
