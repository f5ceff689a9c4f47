import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Usage windows of the subscription backends. Reads alone: nothing is detected or changed. */
export function getUsage(
  { usage }: DaemonContext,
  { refresh }: { refresh: boolean },
): Promise<DaemonSchema<'UsageDocument'>> {
  return usage.read({ refresh });
}
