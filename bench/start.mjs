/** Start-up of the command line and of the servers, beside bare Node and an older build. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { startProgram, stop } from './shared/processes.mjs';
import { below, heading, markdown, Results } from './shared/results.mjs';

export const summary = 'start-up: first byte of ctl, the daemon and `ctl up` until they are ready';

/** `help` is for `npm run bench -- NAME --help`. */
export const options = {
  rounds: { type: 'string', default: '15', help: 'Rounds; fewer than 15 write no results' },
  old: { type: 'string', help: 'Compare with the build in this directory' },
};

const bare = 'node';
const measures = {
  'ctl --version': 'ctl --version to its first byte, ms',
  'ctl --help': 'ctl --help to its first byte, ms',
  'ctl queue --help': 'ctl queue --help to its first byte, ms',
  daemon: 'ctl daemon serve to /healthz, ms',
  up: 'ctl up to ready, ms',
};

/** Ports are chosen by the system; every other setting is the default of a first run. */
const upFlags = ['listen', 'queue-listen', 'metrics-listen', 'db-grpc', 'db-http'].flatMap(
  (name) => [`--${name}`, '127.0.0.1:0'],
);
/** Nothing listens on port 9: a local model of this machine must not count. */
const daemonFlags = ['--listen', '127.0.0.1:0', '--backends-local-url', 'http://127.0.0.1:9'];

/** Interleaved, so that a busy moment of the machine falls on all of them alike. */
export async function run({ args, root, machine, report, note }) {
  const { values } = parseArgs({ args, options });
  const rounds = Number(values.rounds);
  const builds = { ...(values.old !== undefined && { old: values.old }), millrace: root };
  for (const build of Object.values(builds)) {
    if (!existsSync(join(build, 'bin', 'ctl'))) throw new Error(`${build} has no bin/ctl`);
  }
  const results = new Results();
  const home = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  try {
    for (let round = 1; round <= rounds; round++) {
      const turn = round % 2 === 1 ? Object.entries(builds) : Object.entries(builds).toReversed();
      await measure(turn, join(home, String(round)), results);
      note(`round ${round} of ${rounds}: load average ${loadavg()[0].toFixed(1)}`);
    }
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
  const rows = results.table([bare, ...Object.keys(builds)]);
  report(`Median of ${rounds} interleaved rounds; node is a bare process that prints`, rows);
  const verdicts = judge(results);
  report('Targets', verdicts);
  if (rounds < 15) return;
  const file = join(root, 'bench', 'results', 'start.md');
  writeFileSync(file, describe({ args, machine, rows, verdicts }));
  note('Written to bench/results/start.md');
}

/** One measure of all builds before the next, so that all meet the same machine. */
async function measure(turn, home, results) {
  for (const [measure, title] of Object.entries(measures)) {
    results.add(title, bare, await firstByteMs(['-p', '0']));
    for (const [name, root] of turn) {
      results.add(title, name, await timeOf(measure, root, join(home, `${name}-${measure}`)));
    }
  }
}

async function timeOf(measure, root, home) {
  mkdirSync(home, { recursive: true });
  const ctl = join(root, 'bin', 'ctl');
  if (measure === 'up') return readyMs([ctl, 'up', '--json', ...upFlags], home, 'ready');
  if (measure !== 'daemon') return firstByteMs([ctl, ...measure.split(' ').slice(1)]);
  return readyMs([ctl, 'daemon', 'serve', ...daemonFlags], home, 'listening');
}

async function firstByteMs(args) {
  const startedAt = performance.now();
  const child = startProgram(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const tookMs = await new Promise((resolve, reject) => {
    child.stdout.once('data', () => resolve(performance.now() - startedAt));
    child.stdout.once('end', () => reject(new Error(`${args.join(' ')} printed nothing`)));
  });
  child.stdout.resume();
  const code = await exited;
  if (code !== 0) throw new Error(`${args.join(' ')} exited with ${code}`);
  return tookMs;
}

/** Starts servers on an empty home and stops them; the time until they have written `event`. */
async function readyMs(args, home, event) {
  const env = { PATH: process.env.PATH, HOME: home };
  const startedAt = performance.now();
  const child = startProgram(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'ignore'] });
  for await (const line of createInterface({ input: child.stdout })) {
    const { event: written, component, url } = JSON.parse(line);
    if (written !== event) continue;
    if (component === 'daemon') await fetch(`${url}/healthz`);
    const tookMs = performance.now() - startedAt;
    child.stdout.resume();
    await stop(child);
    return tookMs;
  }
  throw new Error(`${args.slice(1).join(' ')} exited before it was ready`);
}

function judge(results) {
  const overNode = (measure) => {
    const title = measures[measure];
    return results.of(title, 'millrace') - results.of(title, bare);
  };
  return [
    below('ctl --help to its first byte over node, ms', 60, overNode('ctl --help')),
    below('ctl daemon serve to /healthz over node, ms', 250, overNode('daemon')),
    below('ctl up to ready, ms', 2_000, results.of(measures.up, 'millrace')),
  ];
}

function describe({ args, machine, rows, verdicts }) {
  return [
    ...heading({ title: 'Start-up', name: 'start', args, machine }),
    '',
    'Each round runs every command once in each build, beside `node -p 0`, which prints one line.',
    'The daemon and `ctl up` start on an empty home each time.',
    '',
    markdown(rows),
    '',
    '## Targets',
    '',
    markdown(verdicts),
    '',
  ].join('\n');
}
