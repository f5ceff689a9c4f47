import { queryOptions, useQuery } from '@tanstack/react-query';
import { authorizedFetch } from '../api/client.js';
import { operationsIn } from '../api/operations.js';
import { requestJson } from '../api/request.js';
import type { QueueConfig, Task } from './api.js';
import { featuresOf, noFeatures, type Features } from './features.js';

/** Operations that older queue servers lack; ask `useFeatures` before calling one. */
const base = `${location.origin}/api/v1/proxy/queue`;
const at = (queue: string) => `${base}/v1/queues/${encodeURIComponent(queue)}`;

type Status = Task['status'];

export interface Progress {
  percent: number | null;
  message: string | null;
  at: string;
}

/** A task in a list: without payload and attempts. */
export type TaskRow = Omit<Task, 'payload' | 'attempts'>;
export type TaskDetail = Task & {
  result?: unknown;
  result_dropped?: boolean;
  progress?: Progress | null;
};

export interface TaskFilter {
  status: readonly Status[];
  handler_ref?: string | undefined;
  group_key?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
}

export interface TaskPage {
  tasks: TaskRow[];
  next_cursor: string | null;
}

function queryText(filter: TaskFilter, more: Readonly<Record<string, string>> = {}): string {
  const { status, ...fields } = filter;
  const params = new URLSearchParams(more);
  for (const one of status) params.append('status', one);
  for (const [name, value] of Object.entries(fields)) if (value) params.set(name, value);
  return params.toString();
}

export const listTasks = (
  queue: string,
  filter: TaskFilter,
  order: string,
  cursor: string,
): Promise<TaskPage> => {
  const more = { order, limit: '200', ...(cursor !== '' && { cursor }) };
  return requestJson('GET', `${at(queue)}/tasks?${queryText(filter, more)}`);
};

interface Count {
  count: number;
  is_estimate: boolean;
}

export type CancelSelector =
  { ids: readonly string[] } | { filter: Omit<TaskFilter, 'status'> & { status: 'PENDING' } };

export const cancelTasks = (
  queue: string,
  selector: CancelSelector,
  dry_run: boolean,
): Promise<{ count: number }> =>
  requestJson('POST', `${at(queue)}/tasks:cancel`, { body: { ...selector, dry_run } });

const taskAt = (id: string) => `${base}/v1/tasks/${encodeURIComponent(id)}`;

export const cancelTask = (id: string, reason: string): Promise<unknown> =>
  requestJson('POST', `${taskAt(id)}:cancel`, { body: reason === '' ? {} : { reason } });
export const runNow = (id: string): Promise<unknown> =>
  requestJson('POST', `${taskAt(id)}:run-now`, { body: {} });
export const setPriority = (id: string, priority: number): Promise<unknown> =>
  requestJson('PATCH', taskAt(id), { body: { priority } });

export interface Worker {
  worker: string;
  principal: string;
  remote_ip: string | null;
  last_seen_at: string;
  in_flight: number;
  claimed: number;
  completed: number;
  failed: number;
}

export interface Schedule {
  name: string;
  cron?: string | null;
  every_ms?: number | null;
  timezone: string;
  task: { handler_ref: string; payload?: string; payload_content_type?: string };
  overlap: string;
  catch_up: string;
  jitter_ms?: number;
  description?: string;
  next_run_at: string | null;
  last_run_at: string | null;
  last_task_id: string | null;
  paused: boolean;
}

export type ScheduleAction = 'run-now' | 'pause' | 'resume';

const scheduleAt = (queue: string, name: string) =>
  `${at(queue)}/schedules/${encodeURIComponent(name)}`;
export const putSchedule = (queue: string, name: string, body: object): Promise<unknown> =>
  requestJson('PUT', scheduleAt(queue, name), { body });
export const deleteSchedule = (queue: string, name: string): Promise<unknown> =>
  requestJson('DELETE', scheduleAt(queue, name));
export const actOnSchedule = (
  queue: string,
  name: string,
  action: ScheduleAction,
): Promise<unknown> => requestJson('POST', `${scheduleAt(queue, name)}:${action}`, { body: {} });

export interface Job {
  id: string;
  queue: string;
  action: string;
  status: 'running' | 'done' | 'cancelled' | 'failed';
  count: number;
  created_at: string;
  finished_at: string | null;
}

/** Redrives or purges in the background. */
export const startJob = async (
  queue: string,
  action: 'redrive' | 'purge',
  body: object,
): Promise<Job> =>
  (await requestJson<{ job: Job }>('POST', `${at(queue)}/dlq:${action}?async=true`, { body })).job;

export const cancelJob = (id: string): Promise<unknown> =>
  requestJson('POST', `${base}/v1/jobs/${encodeURIComponent(id)}:cancel`, { body: {} });

export interface Percentiles {
  p50: number | null;
  p95: number | null;
  p99: number | null;
}

export interface MetricsPoint {
  ts: string;
  submitted: number;
  succeeded: number;
  failed: number;
  dead: number;
  cancelled: number;
  pending: number;
  in_flight: number;
  wait_ms: Percentiles | null;
  run_ms: Percentiles | null;
}

export interface QueueMetrics {
  step_s: number;
  points: MetricsPoint[];
}

/** Checks a config as the server would write it, and returns it with every default. */
export const validateConfig = (queue: string, body: object): Promise<QueueConfig> =>
  requestJson('PUT', `${configAt(queue)}?validate_only=true`, { body });

/** Writes a config; a version makes it fail if the config has changed since. */
export const putConfig = (
  queue: string,
  body: object,
  version: number | undefined,
): Promise<QueueConfig> =>
  requestJson('PUT', configAt(queue), {
    body,
    ...(version !== undefined && { headers: { 'if-match': `"${version}"` } }),
  });

const configAt = (queue: string) => `${base}/v1/admin/queues/${encodeURIComponent(queue)}/config`;

const refetchInterval = 3_000;

/** All pages; the server sends at most 500 schedules in one. */
async function allSchedules(queue: string): Promise<Schedule[]> {
  const schedules: Schedule[] = [];
  let cursor = '';
  do {
    const query = cursor === '' ? '' : `?cursor=${encodeURIComponent(cursor)}`;
    const page = await requestJson<{ schedules: Schedule[]; next_cursor?: string }>(
      'GET',
      `${at(queue)}/schedules${query}`,
    );
    schedules.push(...page.schedules);
    cursor = page.next_cursor ?? '';
  } while (cursor !== '');
  return schedules;
}

export const nextQueries = {
  features: () =>
    queryOptions({
      queryKey: ['queue-features'],
      queryFn: async (): Promise<Features> => {
        const response = await authorizedFetch(`${base}/openapi.yaml`);
        return response.ok ? featuresOf(operationsIn(await response.text())) : noFeatures;
      },
      // The document changes only with the version of the server.
      staleTime: 5 * 60_000,
      refetchInterval: false,
    }),
  count: (queue: string, filter: TaskFilter) =>
    queryOptions({
      queryKey: ['task-count', queue, filter],
      queryFn: () => requestJson<Count>('GET', `${at(queue)}/tasks:count?${queryText(filter)}`),
      refetchInterval,
    }),
  workers: (queue: string) =>
    queryOptions({
      queryKey: ['workers', queue],
      queryFn: async () =>
        (await requestJson<{ workers: Worker[] }>('GET', `${at(queue)}/workers`)).workers,
      refetchInterval,
    }),
  schedules: (queue: string) =>
    queryOptions({
      queryKey: ['schedules', queue],
      queryFn: () => allSchedules(queue),
      refetchInterval,
    }),
  /** With its payload, which lists leave out; read again by every form. */
  schedule: (queue: string, name: string) =>
    queryOptions({
      queryKey: ['schedule', queue, name],
      queryFn: () => requestJson<Schedule>('GET', scheduleAt(queue, name)),
      refetchInterval: false,
      gcTime: 0,
    }),
  jobs: (queue: string) =>
    queryOptions({
      queryKey: ['jobs', queue],
      queryFn: async () => (await requestJson<{ jobs: Job[] }>('GET', `${at(queue)}/jobs`)).jobs,
      refetchInterval,
    }),
  metrics: (queue: string, since: string, step?: '10s' | '1m' | '15m') =>
    queryOptions({
      queryKey: ['queue-metrics', queue, since, step],
      queryFn: () => {
        const query = step === undefined ? `since=${since}` : `since=${since}&step=${step}`;
        return requestJson<QueueMetrics>('GET', `${at(queue)}/metrics?${query}`);
      },
      refetchInterval: 10_000,
    }),
};

/** What the queue server can do; nothing until that is known. */
export function useFeatures(): Features {
  return useQuery(nextQueries.features()).data ?? noFeatures;
}
