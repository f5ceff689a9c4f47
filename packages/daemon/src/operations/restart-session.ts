import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';
import { getSession } from './get-session.js';

/** Restarts the agent where it stopped. */
export async function restartSession(
  context: Pick<DaemonContext, 'sessions'>,
  id: string,
): Promise<DaemonSchema<'Session'>> {
  return context.sessions.restart((await getSession(context, id)).id);
}
