import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** How the branch of each agent stands against CI and its base. */
export async function listBranches(
  { branches }: Pick<DaemonContext, 'branches'>,
  { refresh }: { refresh: boolean },
): Promise<DaemonSchema<'BranchStandings'>> {
  if (refresh) await branches.refresh();
  return { branches: await branches.list() };
}
