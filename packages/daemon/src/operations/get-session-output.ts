import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';
import { getSession } from './get-session.js';

/** A range of a session's output lines. */
export async function getSessionOutput(
  context: Pick<DaemonContext, 'sessions'>,
  id: string,
  { after, limit }: { after: number | undefined; limit: number },
): Promise<DaemonSchema<'SessionOutput'>> {
  const session = await getSession(context, id);
  return context.sessions.output(session.id, after === undefined ? { limit } : { after, limit });
}
