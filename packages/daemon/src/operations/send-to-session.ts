import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Sends text to an agent, and waits until the agent has accepted it. */
export function sendToSession(
  { sessions }: Pick<DaemonContext, 'sessions'>,
  id: string,
  { text }: DaemonSchema<'SendRequest'>,
): Promise<DaemonSchema<'Session'>> {
  return sessions.send(id, text);
}
