import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** CI state of each agent's branch, and its distance to the base. */
export async function listBranches(
  { branches }: Pick<DaemonContext, 'branches'>,
  { refresh }: { refresh: boolean },
): Promise<DaemonSchema<'BranchStandings'>> {
  if (refresh) await branches.refresh();
  return { branches: await branches.list() };
}
