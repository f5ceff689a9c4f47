import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** A range of a session's output lines. */
export function getSessionOutput(
  { sessions }: Pick<DaemonContext, 'sessions'>,
  id: string,
  { after, limit }: { after: number | undefined; limit: number },
): Promise<DaemonSchema<'SessionOutput'>> {
  return sessions.output(id, after === undefined ? { limit } : { after, limit });
}
