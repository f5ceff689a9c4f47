import type { DaemonSchema } from '@millrace/contract/daemon';
import { fail } from '../core/refusals.js';
import type { DaemonContext } from './context.js';

/** Patterns in the history of the agents' sessions. */
export async function getInsights(
  { insights, sessions }: DaemonContext,
  { since }: { since: string | undefined },
): Promise<DaemonSchema<'Insights'>> {
  if (insights) return insights.read(since, () => sessions.list());
  throw fail(
    'FEATURE_DISABLED',
    'The setting insights is off. Set insights to true and restart the daemon.',
  );
}
