import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Current resource usage of the machine, each live agent and the daemon. */
export function getMetrics({
  metrics,
}: Pick<DaemonContext, 'metrics'>): Promise<DaemonSchema<'Metrics'>> {
  return metrics.read();
}
