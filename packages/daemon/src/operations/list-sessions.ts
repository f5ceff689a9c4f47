import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Every session that has not been deleted, newest first. */
export async function listSessions({
  sessions,
}: Pick<DaemonContext, 'sessions'>): Promise<DaemonSchema<'SessionList'>> {
  return { sessions: await sessions.list() };
}
