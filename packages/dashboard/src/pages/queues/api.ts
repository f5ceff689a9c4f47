import type { QueuePaths, QueueSchema } from '@millrace/contract/queue';
import { queryOptions } from '@tanstack/react-query';
import createClient from 'openapi-fetch';
import { authorizedFetch, call } from '../../api/client.js';

/** The queue server behind the daemon, which puts in the token. */
const queueServer = createClient<QueuePaths>({
  baseUrl: `${location.origin}/api/v1/proxy/queue`,
  fetch: authorizedFetch,
});

export type QueueItem = QueueSchema<'QueueListItem'>;
export type QueueConfig = QueueSchema<'QueueConfig'>;
export type Task = QueueSchema<'Task'>;
export type Group = QueueSchema<'DlqGroup'>;
export type Filter = QueueSchema<'SelectorFilter'>;
export type Selector = { ids: string[] } | { filter: Filter };

const at = (queue: string) => ({ params: { path: { queue } } });

// The queue server tells of no changes, so it is asked; the figures move while one looks at them.
const refetchInterval = 3_000;

export const queueQueries = {
  all: () =>
    queryOptions({
      queryKey: ['queues'],
      queryFn: () => call(queueServer.GET('/v1/admin/queues')),
      refetchInterval,
    }),
  config: (queue: string) =>
    queryOptions({
      queryKey: ['queue-config', queue],
      queryFn: () => call(queueServer.GET('/v1/admin/queues/{queue}/config', at(queue))),
      refetchInterval: false,
    }),
  task: (id: string) =>
    queryOptions({
      queryKey: ['queue-task', id],
      queryFn: () => call(queueServer.GET('/v1/tasks/{id}', { params: { path: { id } } })),
      refetchInterval: ({ state: { data } }) =>
        data?.status === 'PENDING' || data?.status === 'IN_FLIGHT' ? 1_000 : false,
    }),
  groups: (queue: string) =>
    queryOptions({
      queryKey: ['dead-groups', queue],
      queryFn: async () =>
        (await call(queueServer.GET('/v1/queues/{queue}/dlq:groups', at(queue)))).groups,
      refetchInterval: 10_000,
    }),
};

export interface DeadPage {
  tasks: DeadRow[];
  next: string;
}

/** A dead task without its payload and attempts, which may be megabytes. */
export type DeadRow = Pick<
  Task,
  'id' | 'handler_ref' | 'dead_at' | 'dead_reason' | 'total_attempts' | 'redrive_count'
> & { errorType: string; message: string; httpStatus: number | null };

type BrowseFilter = Omit<Filter, 'http_status'>;

export async function readDead(
  queue: string,
  filter: BrowseFilter,
  cursor: string,
): Promise<DeadPage> {
  const query = { ...filter, limit: 200, ...(cursor !== '' && { cursor }) };
  const { tasks, next_cursor: next } = await call(
    queueServer.GET('/v1/queues/{queue}/dlq', { params: { path: { queue }, query } }),
  );
  return { tasks: tasks.map(deadRow), next };
}

function deadRow(task: Task): DeadRow {
  const { id, handler_ref, dead_at, dead_reason, total_attempts, redrive_count, last_error } = task;
  return {
    id,
    handler_ref,
    dead_at,
    dead_reason,
    total_attempts,
    redrive_count,
    errorType: last_error?.error_type ?? dead_reason ?? '',
    message: last_error?.message ?? '',
    httpStatus: last_error?.http_status ?? null,
  };
}

export const setPaused = (queue: string, paused: boolean): Promise<unknown> =>
  call(
    paused
      ? queueServer.POST('/v1/admin/queues/{queue}:pause', at(queue))
      : queueServer.POST('/v1/admin/queues/{queue}:resume', at(queue)),
  );

export const submitTask = (
  queue: string,
  body: QueueSchema<'SubmitTaskRequest'>,
): Promise<QueueSchema<'SubmitResult'>> =>
  call(queueServer.POST('/v1/queues/{queue}/tasks', { ...at(queue), body }));

export const probeCallback = (queue: string): Promise<QueueSchema<'CallbackTestResult'>> =>
  call(queueServer.POST('/v1/admin/queues/{queue}:test', at(queue)));

export interface Redrive {
  dry_run?: boolean;
  rate_per_second?: number;
}

export const redrive = (
  queue: string,
  selector: Selector,
  more: Redrive,
): Promise<QueueSchema<'SelectorResult'>> =>
  call(
    queueServer.POST('/v1/queues/{queue}/dlq:redrive', {
      ...at(queue),
      body: { ...selector, ...more },
    }),
  );

export const purge = (
  queue: string,
  selector: Selector,
  more: Pick<Redrive, 'dry_run'>,
): Promise<QueueSchema<'SelectorResult'>> =>
  call(
    queueServer.POST('/v1/queues/{queue}/dlq:purge', {
      ...at(queue),
      body: { ...selector, ...more },
    }),
  );
