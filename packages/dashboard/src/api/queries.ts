import type { DaemonSchema } from '@millrace/contract/daemon';
import { queryOptions } from '@tanstack/react-query';
import { call, daemon } from './client.js';

/**
 * What the pages read, one entry per question. The first part of a key names the kind of thing;
 * live.ts changes or refreshes by it.
 */
export const queries = {
  health: () => queryOptions({ queryKey: ['health'], queryFn: () => call(daemon.GET('/healthz')) }),
  sessions: () =>
    queryOptions({
      queryKey: ['sessions'],
      queryFn: async () => (await call(daemon.GET('/api/v1/sessions'))).sessions,
    }),
  session: (id: string) =>
    queryOptions({
      queryKey: ['session', id],
      // Null when it was there and is gone, see live-cache.ts.
      queryFn: (): Promise<DaemonSchema<'Session'> | null> =>
        call(daemon.GET('/api/v1/sessions/{id}', { params: { path: { id } } })),
    }),
  registry: () =>
    queryOptions({
      queryKey: ['registry'],
      queryFn: () => call(daemon.GET('/api/v1/backends')),
    }),
  usage: () =>
    queryOptions({ queryKey: ['usage'], queryFn: () => readUsage(false), staleTime: 30_000 }),
  spend: () =>
    queryOptions({ queryKey: ['spend'], queryFn: () => call(daemon.GET('/api/v1/spend')) }),
  savings: (since: string, bucket: 'hour' | 'day') =>
    queryOptions({
      queryKey: ['savings', since, bucket],
      queryFn: () => call(daemon.GET('/api/v1/savings', { params: { query: { since, bucket } } })),
    }),
  metrics: () =>
    queryOptions({ queryKey: ['metrics'], queryFn: () => call(daemon.GET('/api/v1/metrics')) }),
  metricsHistory: (since: string) =>
    queryOptions({
      queryKey: ['metrics-history', since],
      queryFn: () => call(daemon.GET('/api/v1/metrics/history', { params: { query: { since } } })),
      staleTime: 15_000,
    }),
  branches: () => queryOptions({ queryKey: ['branches'], queryFn: () => readBranches(false) }),
  pipelines: () =>
    queryOptions({
      queryKey: ['pipelines'],
      queryFn: async () => (await call(daemon.GET('/api/v1/pipelines'))).pipelines,
    }),
  inbox: () =>
    queryOptions({
      queryKey: ['inbox'],
      queryFn: async () =>
        (await call(daemon.GET('/api/v1/inbox', { params: { query: { limit: 1000 } } }))).notes,
    }),
  config: () =>
    queryOptions({
      queryKey: ['config'],
      queryFn: () => call(daemon.GET('/api/v1/config')),
      staleTime: 60_000,
    }),
  insights: () =>
    queryOptions({
      queryKey: ['insights'],
      queryFn: () => call(daemon.GET('/api/v1/insights', { params: { query: { since: '30d' } } })),
      staleTime: 60_000,
    }),
};

export const readUsage = (refresh: boolean): Promise<DaemonSchema<'UsageDocument'>> =>
  call(daemon.GET('/api/v1/usage', { params: { query: { refresh } } }));

export const readBranches = async (refresh: boolean): Promise<DaemonSchema<'BranchStanding'>[]> =>
  (await call(daemon.GET('/api/v1/collab/branches', { params: { query: { refresh } } }))).branches;
