import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Stops the agent's process; the session stays. */
export function stopSession(
  { sessions }: Pick<DaemonContext, 'sessions'>,
  id: string,
): Promise<DaemonSchema<'Session'>> {
  return sessions.stop(id);
}
