import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Starts the agent again where it was. */
export function restartSession(
  { sessions }: Pick<DaemonContext, 'sessions'>,
  id: string,
): Promise<DaemonSchema<'Session'>> {
  return sessions.restart(id);
}
