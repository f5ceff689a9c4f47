import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';
import { getSession } from './get-session.js';

/** Commits all changes in the workspace of a session. */
export async function commitSession(
  context: Pick<DaemonContext, 'sessions' | 'workbench'>,
  id: string,
  request: DaemonSchema<'CommitRequest'>,
): Promise<DaemonSchema<'SessionCommit'>> {
  const session = await getSession(context, id);
  const result = await context.workbench.commit(session, request);
  await context.sessions.setMerged(session.id, false);
  return result;
}
