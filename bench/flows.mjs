import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { installPeers, versionOf } from './engine/peers.mjs';
import { missing, ours, peers, startContestant } from './flows/contestants.mjs';
import { atLeast, below, heading, markdown, percentile, Results } from './shared/results.mjs';

export const summary = 'flows beside DBOS, Restate and BullMQ: steps, wake-ups, children, crashes';

export const options = {
  rounds: { type: 'string', default: '3', help: 'How often each is measured; the median counts' },
  flows: { type: 'string', default: '64', help: 'Flows that run at the same time' },
  steps: { type: 'string', default: '10', help: 'Empty steps of each' },
  samples: { type: 'string', default: '100', help: 'Children that a parent waits for, one by one' },
  children: { type: 'string', default: '1000', help: 'Children of one parent' },
  warmup: { type: 'string', default: '3', help: 'Seconds that each runs flows beforehand' },
  outage: { type: 'string', default: '0', help: 'Seconds without a worker after kill -9' },
  contestants: { type: 'string', default: [...ours, ...peers].join(','), help: 'By commas' },
  install: { type: 'boolean', default: false, help: 'Install the peers first' },
  publish: { type: 'boolean', default: false, help: 'Write bench/results/flows.md' },
};

const measures = {
  steps: 'steps/s, flows at the same time',
  cpu: 'CPU of all processes, s per 1,000 steps',
  wakeUp: 'end of a child to the next step of its parent, p50 ms',
  lateWakeUp: 'the same, p99 ms',
  fan: 'one parent with its children, s',
  crash: 'next step after kill -9, from when a worker is there, s',
};
const maxResumeMs = 120_000;

/** Durable settings for all; contestants alternate in rounds on the same machine. */
export async function run({ args, root, machine, report, note }) {
  const { values } = parseArgs({ args, options });
  if (values.install) installPeers(note);
  const home = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  chmodSync(home, 0o755);
  const contestants = [];
  const absent = [];
  const loads = [];
  const results = new Results();
  try {
    for (const name of values.contestants.split(',')) {
      const problem = peers.includes(name) ? missing(name) : undefined;
      if (problem) absent.push(`${name}: ${problem}`);
      else await started(name);
    }
    for (let round = 1; round <= Number(values.rounds); round++) {
      // Alternates the order, so that none always runs after the same one.
      for (const each of round % 2 === 1 ? contestants : contestants.toReversed()) {
        await measure(each, values, results);
      }
      loads.push(loadavg()[0].toFixed(1));
      note(`round ${round} of ${values.rounds}: load average ${loads.at(-1)}`);
    }
    for (const each of contestants) await crash(each, Number(values.outage) * 1_000, results, note);
  } finally {
    for (const each of contestants) await each.stop();
    rmSync(home, { recursive: true, force: true });
  }
  async function started(name) {
    try {
      const contestant = await startContestant(name, root, home);
      contestants.push(contestant);
      await warmUp(contestant, values);
    } catch (error) {
      if (!peers.includes(name)) throw error;
      absent.push(`${name} does not run here: ${error.message.split('\n')[0]}`);
      const at = contestants.findIndex((each) => each.name === name);
      if (at !== -1) await contestants.splice(at, 1)[0].stop();
    }
  }
  for (const line of absent) note(`Without ${line}`);
  const rows = results.table(contestants.map(({ name }) => name));
  report('The median of the rounds', rows);
  const verdicts = judge(results);
  report('Targets', verdicts);
  if (!values.publish) return;
  const text = describe({ args, machine, values, absent, loads, rows, verdicts });
  writeFileSync(join(root, 'bench', 'results', 'flows.md'), text);
  note('Written to bench/results/flows.md');
}

/**
 * Code that has just been loaded is interpreted: the first steps of a process of Node take five
 * times the CPU time of later ones, and 640 steps are too few to get beyond that.
 */
async function warmUp({ ask }, { warmup, flows, steps }) {
  const endsAt = performance.now() + Number(warmup) * 1_000;
  do {
    await ask('steps', { flows: Number(flows), steps: Number(steps) });
    await ask('wakeUps', { samples: 10 });
    await ask('fan', { children: 100 });
  } while (performance.now() < endsAt);
}

async function measure({ name, ask, cpuUs }, values, results) {
  const [flows, steps] = [Number(values.flows), Number(values.steps)];
  const before = cpuUs();
  const tookMs = await ask('steps', { flows, steps });
  results.add(measures.steps, name, (flows * steps * 1_000) / tookMs);
  results.add(measures.cpu, name, (cpuUs() - before) / 1_000 / (flows * steps));
  const times = await ask('wakeUps', { samples: Number(values.samples) });
  results.add(measures.wakeUp, name, percentile(times, 0.5));
  results.add(measures.lateWakeUp, name, percentile(times, 0.99));
  results.add(
    measures.fan,
    name,
    (await ask('fan', { children: Number(values.children) })) / 1_000,
  );
}

/** The last measure of each: its worker is killed amid a step. */
async function crash({ name, ask, killWorker }, outageMs, results, note) {
  await ask('hang');
  const readyAt = await killWorker(outageMs);
  let timer;
  const late = new Promise((resolve) => (timer = setTimeout(resolve, maxResumeMs)));
  const at = await Promise.race([ask('resumed'), late]);
  clearTimeout(timer);
  if (at === undefined) note(`${name}: no step within ${maxResumeMs / 1_000} s after kill -9`);
  else results.add(measures.crash, name, Math.max(0, at - readyAt) / 1_000);
}

function judge(results) {
  const [remote, inProcess, postgres] = ours;
  const of = (measure, name = remote) => results.of(measures[measure], name);
  return [
    atLeast('steps/s, remote', 4_000, of('steps')),
    atLeast('steps/s, in process', 10_000, of('steps', inProcess)),
    atLeast('steps/s, on PostgreSQL', 1_500, of('steps', postgres)),
    below('CPU s per 1,000 steps, remote', 0.4, of('cpu')),
    below('wake-up p50, ms', 1.5, of('wakeUp')),
    below('wake-up p99, ms', 5, of('lateWakeUp')),
    below('one parent with 1,000 children, s', 0.5, of('fan')),
    below('next step after kill -9, s', 1, of('crash')),
  ];
}

function describe({ args, machine, values, absent, loads, rows, verdicts }) {
  const versions = ['@dbos-inc/dbos-sdk', '@restatedev/restate-server', 'bullmq'].map(
    (name) => `${name} ${versionOf(name) ?? '(absent)'}`,
  );
  const lines = [
    ...heading({ title: 'Flows beside their peers', name: 'flows', args, machine }),
    `- Against: ${versions.join(', ')}`,
    `- Load average after each round: ${loads.join(', ')}`,
    ...absent.map((line) => `- Without ${line}`),
    '',
    'Durable for all: Redis with appendfsync always, PostgreSQL and Restate with their defaults.',
    `${values.flows} flows of ${values.steps} empty steps run at the same time; one process of each`,
    'starts flows and runs them. A flow of BullMQ is a chain of jobs that is known beforehand; it has',
    'no steps and no replay. The crash row is one run: the worker is killed amid a step, and another',
    `is started ${values.outage} s later. Each ran flows for ${values.warmup} s before it was measured.`,
    '',
    markdown(rows),
    '',
    '## Targets',
    '',
    markdown(verdicts),
  ];
  return `${lines.join('\n')}\n`;
}
