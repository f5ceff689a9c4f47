import type { DaemonSchema } from '@millrace/contract/daemon';
import { asTyped } from '../base/command-name.js';
import type { Tone } from '../render/paint.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { timeText } from '../render/time.js';
import { printable, wrap } from '../render/text.js';

type Standing = DaemonSchema<'BranchStanding'>;

/** More commits behind the base than this are highlighted. */
const farBehind = 10;
/** Minimum width for ids and checks. */
const wideColumns = 120;

const tones: Readonly<Record<string, Tone>> = {
  success: 'ok',
  failure: 'bad',
  pending: 'warn',
  none: 'dim',
};

/** A row for each agent, then the problems. */
export function branchesScreen(branches: readonly Standing[], now: number, sheet: Sheet): string {
  if (branches.length === 0) {
    return asTyped(
      'No agent works on a branch. Check with `ctl config branches` that branches are read.\n',
    );
  }
  const isWide = sheet.columns >= wideColumns;
  const titles = ['AGENT', 'BRANCH', 'BASE', 'AHEAD', 'BEHIND', 'MERGED', 'CI', 'CHECKED'];
  const rows = branches.map((standing) => [
    ...rowOf(standing, now, sheet),
    ...(isWide ? [checksOf(standing), standing.agent_id] : []),
  ]);
  const table = renderTable(
    [...titles, ...(isWide ? ['CHECKS', 'ID'] : [])].map((title) => ({ title })),
    rows,
    sheet,
  );
  const notes = [...branches.flatMap(failuresOf), ...errorsOf(branches)];
  return table + notes.flatMap((note) => linesOf(note, sheet)).join('');
}

function rowOf(standing: Standing, now: number, sheet: Sheet): Cell[] {
  const { name, branch, base, ahead, behind, merged, ci, observed_at: seen } = standing;
  return [
    name,
    branch ?? '-',
    base ?? '-',
    countCell(ahead),
    behind !== null && behind > farBehind
      ? { text: String(behind), tone: 'warn' }
      : countCell(behind),
    mergedCell(merged),
    ci.state === null ? '-' : { text: ci.state, tone: tones[ci.state] ?? 'dim' },
    seen === null ? 'not yet' : timeText(Date.parse(seen), now, sheet),
  ];
}

function countCell(count: number | null): Cell {
  return count === null ? '-' : String(count);
}

function mergedCell(merged: boolean | null): Cell {
  if (merged === null) return '-';
  return merged ? { text: 'yes', tone: 'ok' } : 'no';
}

/** `1 of 2 failed`, or how many there are. */
function checksOf({ checks, ci }: Standing): string {
  if (checks.length === 0 && ci.state === null) return '-';
  const failed = checks.filter(({ state }) => state === 'failure').length;
  return failed > 0 ? `${failed} of ${checks.length} failed` : String(checks.length);
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
