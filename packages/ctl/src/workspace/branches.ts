import type { DaemonSchema } from '@millrace/contract/daemon';
import { systemClock } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';
import { daemonApi, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import { branchesScreen } from './branches-screen.js';

export interface BranchesFlags extends DaemonFlags {
  refresh?: boolean;
}

export async function showBranches(flags: BranchesFlags, tools: Tools): Promise<void> {
  const api = await daemonApi(flags, tools);
  const standings = await api.call('listBranches', {
    query: flags.refresh ? { refresh: true } : {},
  });
  if (!isStandings(standings)) {
    throw new Refusal(
      'UNAVAILABLE',
      `${api.url} returned no branches. It may be another version of Millrace.`,
    );
  }
  const { out, json } = tools.terminal;
  const screen = () => branchesScreen(standings.branches, systemClock.now(), out);
  out.write(json ? `${JSON.stringify(standings, null, 2)}\n` : screen());
}

function isStandings(value: unknown): value is DaemonSchema<'BranchStandings'> {
  return (
    typeof value === 'object' &&
    value !== null &&
    'branches' in value &&
    Array.isArray(value.branches)
  );
}
