import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** What the machine, each live agent and the daemon use now. */
export function getMetrics({
  metrics,
}: Pick<DaemonContext, 'metrics'>): Promise<DaemonSchema<'Metrics'>> {
  return metrics.read();
}
