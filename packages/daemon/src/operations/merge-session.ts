import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';
import { getSession } from './get-session.js';

/** Merges the branch of a session into its base. */
export async function mergeSession(
  context: Pick<DaemonContext, 'sessions' | 'workbench'>,
  id: string,
  request: DaemonSchema<'MergeRequest'>,
): Promise<DaemonSchema<'SessionMerge'>> {
  return context.workbench.merge(await getSession(context, id), request);
}
