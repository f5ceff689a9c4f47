/** Writes docs/reference/agent-support.md from the stored results of `npm run agents`. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { format } from 'prettier';
import { changes } from '../agents/shapes.mjs';
import { root } from './prepare.mjs';

const defects = {
  D1: 'Stopping one agent ends another one of the same CLI',
  D2: 'A sent command becomes another command, or is lost',
  D4: 'A queue task whose turn ended in an API error counts as done',
  tokens: 'The tokens of a run differ from what the model reported',
};

/**
 * @param {{stored: object, clis: object, cases: string[], platform: string}} results `stored` has
 * the cells by CLI and case.
 */
export async function supportPage({ stored, clis, cases, platform }) {
  const names = Object.keys(clis).filter((name) => stored[name]);
  const cellOf = (name, one) => stored[name].cells[one];
  const cells = names.flatMap((name) => cases.flatMap((one) => cellOf(name, one) ?? []));
  const lines = [
    '# Supported agents',
    '',
    'Results of `npm run agents`, which runs the real command-line agents against fake model',
    `servers. ${spanOf(cells)} on ${platform}. ${sourceOf(cells)}`,
    'ACP is the Agent Client Protocol.',
    '',
    '| Agent | Version | ACP |',
    '|---|---|---|',
    ...names.map(
      (name) => `| ${name} | ${stored[name].version ?? 'no build'} | ${acpOf(clis[name])} |`,
    ),
    '',
    'In the table of capabilities, `ok` passed, `FAILED` did not, and `no` is not supported or not',
    'tested; the notes say why.',
    '',
    `| Capability | ${names.join(' | ')} |`,
    `|---|${names.map(() => '---').join('|')}|`,
    ...cases.map(
      (one) =>
        `| ${one} | ${names.map((name) => cellOf(name, one)?.cell ?? 'not run').join(' | ')} |`,
    ),
    '',
    ...notesOf(names, cases, cellOf),
    ...changeLines(),
    ...regressionLines(cells[0]?.build),
  ];
  return format(lines.join('\n'), { parser: 'markdown', printWidth: 100 });
}

function spanOf(cells) {
  const dates = cells.map(({ date }) => date).toSorted((a, b) => (a < b ? -1 : 1));
  const [first, last] = [dates[0], dates.at(-1)];
  return first === last ? `Run on ${first}` : `Run from ${first} to ${last}`;
}

function sourceOf(cells) {
  const builds = new Set(cells.map(({ build }) => build));
  const [only] = builds;
  return builds.size === 1 && only !== undefined
    ? `Every cell is of the build ${only}.`
    : 'Each cell is the latest run of its case; they are not all of one build.';
}

function acpOf({ adapter }) {
  if (!adapter) return 'native';
  return adapter.missing || `by ${adapter.program} ${adapter.version}`;
}

function notesOf(names, cases, cellOf) {
  const notes = names.flatMap((name) =>
    cases.flatMap((one) => {
      const note = cellOf(name, one)?.note;
      return note ? [`- ${name}, ${one}: ${note}`] : [];
    }),
  );
  return notes.length > 0 ? ['## Notes', '', ...notes, ''] : [];
}

/** What a version writes and offers that the one before it did not, and the other way round. */
function changeLines() {
  const lines = changes().flatMap(({ name, from, to, lines: changed }) => [
    `${name} ${to} compared with ${from}:`,
    '',
    ...(changed.length === 0 ? ['- no difference'] : changed.map((line) => `- ${line}`)),
    '',
  ]);
  return lines.length > 0 ? ['## Changes of versions', '', ...lines] : [];
}

/** What `agents/regressions.mjs --publish` counted; the tested build is the last of each defect. */
function regressionLines(testedBuild) {
  const file = join(root, 'agents', 'regressions.json');
  if (!existsSync(file)) return [];
  const rows = JSON.parse(readFileSync(file, 'utf8'));
  const order = Object.keys(defects);
  const rankOf = ({ defect, build }) => order.indexOf(defect) * 2 + Number(build === testedBuild);
  const sorted = rows.toSorted((a, b) => rankOf(a) - rankOf(b));
  return [
    '## Defects of earlier builds',
    '',
    'Counted by `node agents/regressions.mjs`, which repeats each defect on the build it is given.',
    '`Undecided` repetitions had no result within the time limit.',
    '',
    '| Defect | Agent | Build | Date | Repetitions | Seen | Undecided |',
    '|---|---|---|---|---|---|---|',
    ...sorted.map(({ defect, cli, build, date, seen, absent, undecided }) => {
      const count = seen + absent + undecided;
      return `| ${defects[defect]} | ${cli} | ${build} | ${date} | ${count} | ${seen} | ${undecided} |`;
    }),
    '',
  ];
}
