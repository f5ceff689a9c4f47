import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Tells an agent something, and waits until it has taken it. */
export function sendToSession(
  { sessions }: Pick<DaemonContext, 'sessions'>,
  id: string,
  { text }: DaemonSchema<'SendRequest'>,
): Promise<DaemonSchema<'Session'>> {
  return sessions.send(id, text);
}
