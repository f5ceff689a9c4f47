import type { DaemonSchema } from '@millrace/contract/daemon';
import { queryOptions } from '@tanstack/react-query';
import { daemon } from './client.js';

/**
 * The queries of the pages. live-cache.ts updates or invalidates them by the first part of their
 * key.
 */
export const queries = {
  health: () => queryOptions({ queryKey: ['health'], queryFn: () => daemon.call('getHealth') }),
  sessions: () =>
    queryOptions({
      queryKey: ['sessions'],
      queryFn: async () => (await daemon.call('listSessions')).sessions,
    }),
  board: () => queryOptions({ queryKey: ['board'], queryFn: () => daemon.call('getBoard') }),
  session: (id: string) =>
    queryOptions({
      queryKey: ['session', id],
      // Null after the session was deleted, see live-cache.ts.
      queryFn: (): Promise<DaemonSchema<'Session'> | null> =>
        daemon.call('getSession', { path: { id } }),
    }),
  registry: () =>
    queryOptions({
      queryKey: ['registry'],
      queryFn: () => daemon.call('listBackends'),
    }),
  usage: () =>
    queryOptions({ queryKey: ['usage'], queryFn: () => readUsage(false), staleTime: 30_000 }),
  spend: () => queryOptions({ queryKey: ['spend'], queryFn: () => daemon.call('getSpend') }),
  usageValue: () =>
    queryOptions({ queryKey: ['spend', 'value'], queryFn: () => daemon.call('getUsageValue') }),
  savings: (since: string, bucket: 'hour' | 'day') =>
    queryOptions({
      queryKey: ['savings', since, bucket],
      queryFn: () => daemon.call('getSavings', { query: { since, bucket } }),
    }),
  metrics: () => queryOptions({ queryKey: ['metrics'], queryFn: () => daemon.call('getMetrics') }),
  metricsHistory: (since: string) =>
    queryOptions({
      queryKey: ['metrics-history', since],
      queryFn: () => daemon.call('getMetricsHistory', { query: { since } }),
      staleTime: 15_000,
    }),
  branches: () => queryOptions({ queryKey: ['branches'], queryFn: () => readBranches(false) }),
  pipelines: () =>
    queryOptions({
      queryKey: ['pipelines'],
      queryFn: async () => (await daemon.call('listPipelines')).pipelines,
    }),
  plans: () =>
    queryOptions({
      queryKey: ['plans'],
      queryFn: async () => (await daemon.call('listPlans')).plans,
    }),
  inbox: () =>
    queryOptions({
      queryKey: ['inbox'],
      queryFn: async () => (await daemon.call('listInbox', { query: { limit: 1000 } })).notes,
    }),
  config: () =>
    queryOptions({
      queryKey: ['config'],
      queryFn: () => daemon.call('getConfig'),
      staleTime: 60_000,
    }),
  insights: () =>
    queryOptions({
      queryKey: ['insights'],
      queryFn: () => daemon.call('getInsights', { query: { since: '30d' } }),
      staleTime: 60_000,
    }),
};

export const readUsage = (refresh: boolean): Promise<DaemonSchema<'UsageDocument'>> =>
  daemon.call('getUsage', { query: { refresh } });

export const readBranches = async (refresh: boolean): Promise<DaemonSchema<'BranchStanding'>[]> =>
  (await daemon.call('listBranches', { query: { refresh } })).branches;
