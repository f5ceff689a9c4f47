import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Current resource usage of the machine, each live agent and the daemon. */
export async function getMetrics({
  metrics,
  spend,
}: Pick<DaemonContext, 'metrics' | 'spend'>): Promise<DaemonSchema<'Metrics'>> {
  const [now, scan] = await Promise.all([metrics.read(), spend?.progress()]);
  return scan ? { ...now, transcript_scan: scan } : now;
}
