import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Usage windows of the subscription backends. Read-only. */
export function getUsage(
  { usage }: DaemonContext,
  { refresh }: { refresh: boolean },
): Promise<DaemonSchema<'UsageDocument'>> {
  return usage.read({ refresh });
}
