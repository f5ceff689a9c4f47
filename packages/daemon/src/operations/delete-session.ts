import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';
import { getSession } from './get-session.js';

/** Stops the agent and deletes the session with its worktree, unless work would be lost. */
export async function deleteSession(
  context: Pick<DaemonContext, 'sessions'>,
  id: string,
): Promise<DaemonSchema<'SessionDeletion'>> {
  return context.sessions.remove((await getSession(context, id)).id);
}
