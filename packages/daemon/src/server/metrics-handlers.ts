import type { DaemonOperations } from '@millrace/contract/daemon';
import type { Handlers } from '@millrace/kit/http';
import type { DaemonContext } from '../operations/context.js';
import { getMetricsHistory } from '../operations/get-metrics-history.js';
import { getMetrics } from '../operations/get-metrics.js';
import { listBranches } from '../operations/list-branches.js';
import type { Caller } from './access/authenticator.js';

type MetricsOperations = Pick<
  DaemonOperations,
  'getMetrics' | 'getMetricsHistory' | 'listBranches'
>;

/** Resource usage and branch status of agents. */
export function metricsHandlers(
  context: Pick<DaemonContext, 'metrics' | 'branches' | 'spend'>,
): Handlers<MetricsOperations, Caller> {
  return {
    getMetrics: async () => ({ status: 200, body: await getMetrics(context) }),
    getMetricsHistory: async ({ query: { since, step } }) => ({
      status: 200,
      body: await getMetricsHistory(context, { since, step }),
    }),
    listBranches: async ({ query }) => ({
      status: 200,
      body: await listBranches(context, { refresh: query.refresh ?? false }),
    }),
  };
}
