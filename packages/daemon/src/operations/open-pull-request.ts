import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';
import { getSession } from './get-session.js';

/** Opens a pull request for the branch of a session. */
export async function openPullRequest(
  context: Pick<DaemonContext, 'sessions' | 'workbench'>,
  id: string,
  request: DaemonSchema<'OpenPrRequest'>,
): Promise<DaemonSchema<'SessionPullRequest'>> {
  return context.workbench.openPr(await getSession(context, id), request);
}
