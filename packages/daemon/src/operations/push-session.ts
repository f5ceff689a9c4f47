import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';
import { getSession } from './get-session.js';

/** Pushes the branch of a session. */
export async function pushSession(
  context: Pick<DaemonContext, 'sessions' | 'workbench'>,
  id: string,
  request: DaemonSchema<'PushRequest'>,
): Promise<DaemonSchema<'SessionPush'>> {
  return context.workbench.push(await getSession(context, id), request);
}
