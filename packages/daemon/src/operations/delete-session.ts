import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Stops the agent and deletes the session with its worktree, unless work would be lost. */
export function deleteSession(
  { sessions }: Pick<DaemonContext, 'sessions'>,
  id: string,
): Promise<DaemonSchema<'SessionDeletion'>> {
  return sessions.remove(id);
}
