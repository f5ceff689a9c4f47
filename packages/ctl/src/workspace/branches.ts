import type { DaemonSchema } from '@millrace/contract/daemon';
import * as daemonLists from '@millrace/contract/lists/daemon';
import { systemClock } from '@millrace/kit/clock';
import { daemonApi, otherVersion, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import { listText } from '../base/list-text.js';
import type { Sheet } from '../render/table.js';
import { printable, wrap } from '../render/text.js';

type Standing = DaemonSchema<'BranchStanding'>;

export interface BranchesFlags extends DaemonFlags {
  refresh?: boolean;
}

export async function showBranches(flags: BranchesFlags, tools: Tools): Promise<void> {
  const api = await daemonApi(flags, tools);
  const standings = await api.call('listBranches', {
    query: flags.refresh ? { refresh: true } : {},
  });
  if (!isStandings(standings)) throw otherVersion(api, 'branches');
  tools.terminal.show(standings, (out) =>
    branchesScreen(standings.branches, systemClock.now(), out),
  );
}

function isStandings(value: unknown): value is DaemonSchema<'BranchStandings'> {
  return (
    typeof value === 'object' &&
    value !== null &&
    'branches' in value &&
    Array.isArray(value.branches)
  );
}

/** A row for each agent, then the problems. */
export function branchesScreen(branches: readonly Standing[], now: number, sheet: Sheet): string {
  const notes = [...branches.flatMap(failuresOf), ...errorsOf(branches)];
  const lines = notes.flatMap((note) => linesOf(note, sheet));
  return listText(daemonLists.branches, branches, now, sheet) + lines.join('');
}

function failuresOf({ name, checks }: Standing): string[] {
  return checks
    .filter(({ state }) => state === 'failure')
    .map((check) => `${name}: ${check.name} failed${check.url ? `, ${check.url}` : ''}`);
}

/** An error that several agents have, such as a missing program, is shown once. */
function errorsOf(branches: readonly Standing[]): string[] {
  const names = new Map<string, string[]>();
  for (const { name, error } of branches) {
    if (error !== null) names.set(error, [...(names.get(error) ?? []), name]);
  }
  return [...names].map(([error, those]) => {
    const who = those.length === 1 ? those[0]! : `${those.length} agents`;
    return `${who}: ${error}.`;
  });
}

function linesOf(note: string, sheet: Sheet): string[] {
  // A URL that is broken in two cannot be followed.
  const lines = note.includes('://') ? [printable(note)] : wrap(printable(note), sheet.columns);
  return lines.map((line) => `${sheet.paint('dim', line)}\n`);
}
