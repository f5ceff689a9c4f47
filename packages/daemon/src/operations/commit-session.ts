import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';
import { getSession } from './get-session.js';

/** Commits all changes in the workspace of a session. */
export async function commitSession(
  context: Pick<DaemonContext, 'sessions' | 'workbench'>,
  id: string,
  request: DaemonSchema<'CommitRequest'>,
): Promise<DaemonSchema<'SessionCommit'>> {
  return context.workbench.commit(await getSession(context, id), request);
}
