import type { DaemonSchema } from '@millrace/contract/daemon';
import { queryOptions } from '@tanstack/react-query';
import { daemon } from './client.js';

/** A query by its key; live-cache.ts updates or invalidates it by the first part. */
export const read = <Data>(
  queryKey: readonly unknown[],
  queryFn: () => Promise<Data>,
  more: { staleTime?: number; gcTime?: number; refetchInterval?: number | false } = {},
) => queryOptions({ queryKey, queryFn, ...more });

/** The queries of the pages. */
export const queries = {
  health: () => read(['health'], () => daemon.call('getHealth')),
  sessions: () => read(['sessions'], async () => (await daemon.call('listSessions')).sessions),
  board: () => read(['board'], () => daemon.call('getBoard')),
  session: (id: string) =>
    // Null after the session was deleted, see live-cache.ts.
    read(['session', id], (): Promise<DaemonSchema<'Session'> | null> =>
      daemon.call('getSession', { path: { id } }),
    ),
  registry: () => read(['registry'], () => daemon.call('listBackends')),
  usage: () => read(['usage'], () => readUsage(false), { staleTime: 30_000 }),
  spend: () => read(['spend'], () => daemon.call('getSpend')),
  usageValue: () => read(['spend', 'value'], () => daemon.call('getUsageValue')),
  savings: (since: string, bucket: 'hour' | 'day') =>
    read(['savings', since, bucket], () => daemon.call('getSavings', { query: { since, bucket } })),
  metrics: () => read(['metrics'], () => daemon.call('getMetrics')),
  metricsHistory: (since: string) =>
    read(['metrics-history', since], () => daemon.call('getMetricsHistory', { query: { since } }), {
      staleTime: 15_000,
    }),
  branches: () => read(['branches'], () => readBranches(false)),
  pipelines: () => read(['pipelines'], async () => (await daemon.call('listPipelines')).pipelines),
  plans: () => read(['plans'], async () => (await daemon.call('listPlans')).plans),
  inbox: () =>
    read(['inbox'], async () => {
      return (await daemon.call('listInbox', { query: { limit: 1000 } })).notes;
    }),
  config: () => read(['config'], () => daemon.call('getConfig'), { staleTime: 60_000 }),
};

export const readUsage = (refresh: boolean): Promise<DaemonSchema<'UsageDocument'>> =>
  daemon.call('getUsage', { query: { refresh } });

export const readBranches = async (refresh: boolean): Promise<DaemonSchema<'BranchStanding'>[]> =>
  (await daemon.call('listBranches', { query: { refresh } })).branches;
