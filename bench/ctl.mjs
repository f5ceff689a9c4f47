import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

export const summary = 'what starting ctl costs beside starting Node itself';

const TARGET_MS = 60;
const ctl = fileURLToPath(new URL('../bin/ctl', import.meta.url));

const COMMANDS = {
  'node -e 0': ['-e', '0'],
  'ctl --version': [ctl, '--version'],
  'ctl help': [ctl, 'help'],
  'ctl doctor --json': [ctl, 'doctor', '--json'],
};

/** Interleaved, so that a busy moment of the machine falls on all of them alike. */
export async function run(bench) {
  const { values } = parseArgs({
    args: bench.args,
    options: { rounds: { type: 'string', default: '20' } },
  });
  const rounds = Number(values.rounds);
  const times = new Map(Object.keys(COMMANDS).map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const [name, args] of Object.entries(COMMANDS)) times.get(name).push(timeOnce(name, args));
  }
  const bare = statistics(times.get('node -e 0'));
  bench.report(
    `Start-up, ${rounds} interleaved runs each, in milliseconds`,
    [...times].map(([command, list]) => {
      const { median, best } = statistics(list);
      return {
        command,
        median: round1(median),
        best: round1(best),
        'median over node': round1(median - bare.median),
        'best over node': round1(best - bare.best),
      };
    }),
  );
  const extra = statistics(times.get('ctl --version')).median - bare.median;
  const verdict = extra <= TARGET_MS ? 'met' : 'MISSED';
  bench.note(
    `Target: ctl --version at most ${TARGET_MS} ms over node -e 0: ${verdict} (${round1(extra)} ms)`,
  );
}

function timeOnce(name, args) {
  const started = performance.now();
  const { status, stderr } = spawnSync(process.execPath, args);
  const took = performance.now() - started;
  if (status !== 0) throw new Error(`${name} ended with ${status}: ${stderr}`);
  return took;
}

function statistics(list) {
  const sorted = list.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const median = (sorted[Math.floor(middle)] + sorted[Math.ceil(middle) - 1]) / 2;
  return { median, best: sorted[0] };
}

function round1(ms) {
  return Math.round(ms * 10) / 10;
}
