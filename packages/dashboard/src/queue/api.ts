import { createQueueClient } from '@millrace/client';
import type { QueueSchema } from '@millrace/contract/queue';
import { queryOptions } from '@tanstack/react-query';
import { authorizedFetch } from '../api/client.js';

/** The queue server through the daemon's proxy, which adds the queue's own token. */
const queueServer = createQueueClient({
  url: `${location.origin}/api/v1/proxy/queue`,
  fetch: authorizedFetch,
});

export type QueueItem = QueueSchema<'QueueListItem'>;
export type QueueConfig = QueueSchema<'QueueConfig'>;
export type Task = QueueSchema<'Task'>;
export type Group = QueueSchema<'DlqGroup'>;
export type Filter = QueueSchema<'SelectorFilter'>;
export type Selector = { ids: string[] } | { filter: Filter };

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
  groups: (queue: string) =>
    queryOptions({
      queryKey: ['dead-groups', queue],
      queryFn: async () => (await queueServer.call('listDlqGroups', { path: { queue } })).groups,
      refetchInterval: 10_000,
    }),
};

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
  /** The handler's response where there was one, else the queue's description of the failure. */
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
    message: attempts.at(-1)?.response_snippet || (last_error?.message ?? ''),
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
