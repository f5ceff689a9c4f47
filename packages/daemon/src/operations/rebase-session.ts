import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';
import { getSession } from './get-session.js';

/** Rebases the branch of a session onto its base. */
export async function rebaseSession(
  context: Pick<DaemonContext, 'sessions' | 'workbench'>,
  id: string,
  request: DaemonSchema<'RebaseRequest'>,
): Promise<DaemonSchema<'SessionRebase'>> {
  return context.workbench.rebase(await getSession(context, id), request);
}
