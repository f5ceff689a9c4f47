import type { DaemonSchema } from '@millrace/contract/daemon';
import { fail } from '../core/refusals.js';
import type { DaemonContext } from './context.js';

/** One session. */
export async function getSession(
  { sessions }: Pick<DaemonContext, 'sessions'>,
  id: string,
): Promise<DaemonSchema<'Session'>> {
  const session = await sessions.find(id);
  if (session) return session;
  throw fail(
    'SESSION_NOT_FOUND',
    `Session "${id.slice(0, 64)}" does not exist. GET /api/v1/sessions lists all sessions.`,
  );
}
