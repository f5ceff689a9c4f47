import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';
import { getSession } from './get-session.js';

/** What a session changed since its branch left the base. */
export async function getSessionDiff(
  context: Pick<DaemonContext, 'sessions' | 'workbench'>,
  id: string,
  { base }: { base: string | undefined },
): Promise<DaemonSchema<'SessionDiff'>> {
  return context.workbench.diff(await getSession(context, id), base);
}
