import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';
import { getSession } from './get-session.js';

/** Sends text to an agent, and waits until the agent has accepted it. */
export async function sendToSession(
  context: Pick<DaemonContext, 'sessions'>,
  id: string,
  { text }: DaemonSchema<'SendRequest'>,
): Promise<DaemonSchema<'Session'>> {
  return context.sessions.send((await getSession(context, id)).id, text);
}
