import type { DaemonSchema } from '@millrace/contract/daemon';
import type { HistoryQuery } from '../metrics/metrics.js';
import type { DaemonContext } from './context.js';

/** Recorded metrics, averaged per step, oldest first. */
export function getMetricsHistory(
  { metrics }: Pick<DaemonContext, 'metrics'>,
  query: HistoryQuery,
): Promise<DaemonSchema<'MetricsHistory'>> {
  return metrics.history(query);
}
