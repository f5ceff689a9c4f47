import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';
import { getSession } from './get-session.js';

/** Stops the agent's process; the session stays. */
export async function stopSession(
  context: Pick<DaemonContext, 'sessions'>,
  id: string,
): Promise<DaemonSchema<'Session'>> {
  return context.sessions.stop((await getSession(context, id)).id);
}
