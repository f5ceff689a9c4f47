import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { installPeers, versionOf } from './engine/peers.mjs';
import { atLeast, below, heading, markdown, Results } from './shared/results.mjs';
import {
  askAgain,
  ccusageProblem,
  differences,
  peakOf,
  runCcusage,
  startMillrace,
} from './transcripts/contestants.mjs';
import { generate } from './transcripts/generate.mjs';

export const summary = 'counting what agents spent from their transcripts, beside ccusage';

/** `help` is for `npm run bench -- NAME --help`. */
export const options = {
  install: { type: 'boolean', default: false, help: 'Install the peers' },
  rounds: { type: 'string', default: '3', help: 'Rounds' },
  megabytes: { type: 'string', default: '1000', help: 'Size of the generated transcripts' },
};

const measures = {
  first: 'first count of everything, ms',
  restart: 'count after a restart, nothing new, ms',
  again: 'asked once more, nothing new, ms',
  memory: 'most memory, MB',
};

/** The same generated transcripts for both, in rounds; figures must be those of the generator. */
export async function run({ args, root, machine, report, note }) {
  const { values } = parseArgs({ args, options });
  if (values.install) return installPeers(note);
  const problem = ccusageProblem();
  if (problem) note(`Without ccusage: ${problem}`);
  const names = ['millrace', ...(problem ? [] : ['ccusage'])];
  const home = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  const results = new Results();
  const wrong = [];
  let truth;
  try {
    truth = generate(home, Number(values.megabytes));
    note(`${Math.round(truth.bytes / 1e6)} MB in ${truth.files} files`);
    for (let round = 1; round <= Number(values.rounds); round++) {
      wrong.push(...(await measureMillrace(root, home, round, truth, results)));
      if (!problem) wrong.push(...(await measureCcusage(home, truth, results)));
      note(`round ${round} of ${values.rounds}: load average ${loadavg()[0].toFixed(1)}`);
    }
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
  for (const line of new Set(wrong)) note(line);
  const rows = results.table(names);
  report('The median of the rounds', rows);
  const verdicts = judge(results, wrong);
  report('Targets', verdicts);
  if (problem || Number(values.megabytes) < 1_000) return;
  mkdirSync(join(root, 'bench', 'results'), { recursive: true });
  const file = join(root, 'bench', 'results', 'transcripts.md');
  writeFileSync(file, describe({ args, machine, truth, rows, verdicts }));
  note('Written to bench/results/transcripts.md');
}

async function measureMillrace(root, home, round, truth, results) {
  const name = 'millrace';
  const data = join(home, `data-${round}`);
  const first = await startMillrace(root, home, data, truth);
  results.add(measures.first, name, first.ms);
  const peakMb = peakOf(first.daemon.child.pid);
  if (peakMb !== undefined) results.add(measures.memory, name, peakMb);
  await first.daemon.stop();
  const second = await startMillrace(root, home, data, truth);
  results.add(measures.restart, name, second.ms);
  const again = await askAgain(second.daemon);
  results.add(measures.again, name, again.ms);
  await second.daemon.stop();
  return [first, second, again].flatMap(({ figures }) => differences(name, figures, truth));
}

/** It keeps nothing: every run counts everything. */
async function measureCcusage(home, truth, results) {
  const name = 'ccusage';
  const first = await runCcusage(home);
  const second = await runCcusage(home);
  results.add(measures.first, name, first.ms);
  results.add(measures.restart, name, second.ms);
  results.add(measures.again, name, second.ms);
  if (first.peakMb !== undefined) results.add(measures.memory, name, first.peakMb);
  return [first, second].flatMap(({ figures }) => differences(name, figures, truth));
}

function judge(results, wrong) {
  const times = (measure) => results.of(measure, 'ccusage') / results.of(measure, 'millrace');
  return [
    {
      target: 'tokens by day and by model',
      asked: 'as generated',
      measured: wrong.length === 0 ? 'the same' : `${wrong.length} differences`,
      verdict: wrong.length === 0 ? 'met' : 'MISSED',
    },
    atLeast('first count, ccusage / millrace', 3, times(measures.first)),
    atLeast('count after a restart, ccusage / millrace', 50, times(measures.restart)),
    atLeast('asked once more, ccusage / millrace', 50, times(measures.again)),
    below('most memory, MB', 200, results.of(measures.memory, 'millrace')),
  ];
}

function describe({ args, machine, truth, rows, verdicts }) {
  const lines = [
    ...heading({ title: 'Counting transcripts', name: 'transcripts', args, machine }),
    `- Against: ccusage ${versionOf('ccusage')}`,
    `- Input: ${Math.round(truth.bytes / 1e6)} MB of claude transcripts in ${truth.files} files`,
    '',
    'The transcripts are generated: prompts and answers with usage on several lines of a message,',
    'and resumed sessions that begin with a copy. Times are those of whole processes, from their',
    'start to their figures; `ccusage daily --json --offline --breakdown` reads everything in every',
    'run, the daemon remembers how far it has read. What a message uses is the same on all of its',
    'lines here; where it grows, ccusage takes the first line and we the greatest figure.',
    '',
    markdown(rows),
    '',
    '## Targets',
    '',
    markdown(verdicts),
  ];
  return `${lines.join('\n')}\n`;
}
