import type { DaemonOperations } from '@millrace/contract/daemon';
import type { Handlers } from '@millrace/kit/http';
import type { DaemonContext } from '../operations/context.js';
import type { Caller } from './access/authenticator.js';

type MetricsOperations = Pick<
  DaemonOperations,
  'getMetrics' | 'getMetricsHistory' | 'listBranches'
>;

/** Resource usage and branch status of agents. */
export function metricsHandlers({
  metrics,
  branches,
  spend,
}: Pick<DaemonContext, 'metrics' | 'branches' | 'spend'>): Handlers<MetricsOperations, Caller> {
  return {
    getMetrics: async () => {
      const [now, scan] = await Promise.all([metrics.read(), spend?.progress()]);
      return { status: 200, body: scan ? { ...now, transcript_scan: scan } : now };
    },
    getMetricsHistory: async ({ query: { since, step } }) => ({
      status: 200,
      body: await metrics.history({ since, step }),
    }),
    listBranches: async ({ query }) => {
      if (query.refresh) await branches.refresh();
      return { status: 200, body: { branches: await branches.list() } };
    },
  };
}
