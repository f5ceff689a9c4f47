import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';
import { getSession } from './get-session.js';

/** Merges the branch of a session into its base. */
export async function mergeSession(
  context: Pick<DaemonContext, 'sessions' | 'workbench'>,
  id: string,
  request: DaemonSchema<'MergeRequest'>,
): Promise<DaemonSchema<'SessionMerge'>> {
  const session = await getSession(context, id);
  const result = await context.workbench.merge(session, request);
  await context.sessions.setMerged(session.id, true);
  return result;
}
