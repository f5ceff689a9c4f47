import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Ends the agent, and forgets the session with its worktree, unless something would be lost. */
export function deleteSession(
  { sessions }: Pick<DaemonContext, 'sessions'>,
  id: string,
): Promise<DaemonSchema<'SessionDeletion'>> {
  return sessions.remove(id);
}
