import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { judgeScale, measureScale, scaleOptions } from './daemon/scale.mjs';
import { installAgent, permissionWaits } from './daemon/permissions.mjs';
import { Daemon } from './daemon/server.mjs';
import { agentCount, redrawTimes } from './daemon/tui.mjs';
import { wrk } from './db-server/load-tools.mjs';
import { hasCommand } from './shared/processes.mjs';
import { atLeast, below, heading, markdown, Results } from './shared/results.mjs';

export const summary = 'the daemon: start, idle, reads, ctl, many sessions and transcripts';

/** `help` is for `npm run bench -- NAME --help`. */
export const options = {
  rounds: { type: 'string', default: '5', help: 'Rounds' },
  seconds: { type: 'string', default: '4', help: 'Seconds of each load' },
  idle: { type: 'string', default: '10', help: 'Seconds without any load' },
  ...scaleOptions,
};

const ours = 'millrace';
const measures = {
  node: 'node -e 0, ms',
  cold: 'first start to /healthz over node, ms',
  coldCpu: 'CPU of the first start, ms',
  warm: 'next start to /healthz over node, ms',
  list: 'ctl backend list over node, ms',
  memory: 'memory when idle, MB',
  wakeUps: 'wake-ups a second when idle',
  cpu: 'CPU a second when idle, ms',
  reads: 'GET /api/v1/backends by 64 clients, calls/s',
  callCpu: 'CPU of the daemon for one of them, ms',
  loadedMemory: 'memory after that, MB',
  permission: 'permission request over ACP to its answer over REST, ms',
  redraw: `key to redraw of ctl tui with ${agentCount} agents, ms`,
};

/** In rounds, each on an empty home, so that a busy moment of the machine falls on one alone. */
export async function run({ args, root, machine, report, note }) {
  const { values } = parseArgs({ args, options });
  const hasWrk = hasCommand('wrk');
  if (!hasWrk) note('Without reads per second: wrk is missing (apt-get install wrk)');
  const home = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  const results = new Results();
  const wrong = [];
  const loads = { seconds: Number(values.seconds), idleSeconds: Number(values.idle), hasWrk };
  try {
    for (let round = 1; round <= Number(values.rounds); round++) {
      await measure(root, join(home, String(round)), loads, results);
      note(`round ${round} of ${values.rounds}: load average ${loadavg()[0].toFixed(1)}`);
    }
    const { idleSeconds } = loads;
    const scale = { root, home: join(home, 'scale'), values, idleSeconds, note };
    if (Number(values.sessions) > 0) wrong.push(...(await measureScale(scale, results)));
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
  for (const line of new Set(wrong)) note(line);
  const rows = results.table([ours]);
  report('The median of the rounds', rows);
  const verdicts = [...judge(results), ...judgeScale(results)];
  report('Targets', verdicts);
  if (wrong.length > 0) throw new Error('the daemon counted wrongly');
  if (!hasWrk || Number(values.rounds) < 5) return;
  mkdirSync(join(root, 'bench', 'results'), { recursive: true });
  const file = join(root, 'bench', 'results', 'daemon.md');
  writeFileSync(file, describe({ args, values, machine, rows, verdicts }));
  note('Written to bench/results/daemon.md');
}

async function measure(root, home, { seconds, idleSeconds, hasWrk }, results) {
  const add = (name, value) => value !== undefined && results.add(measures[name], ours, value);
  const bare = median([0, 1, 2, 3, 4].map(() => timeOf(['-e', '0'], process.env)));
  add('node', bare);
  const first = await Daemon.start(root, home);
  add('cold', first.readyMs - bare);
  add('coldCpu', first.cpuMs);
  await first.stop();
  add('permission', await measurePermission(root, `${home}-agent`));
  const redraws = await redrawTimes(root, `${home}-tui`);
  if (redraws) add('redraw', median(redraws));
  const daemon = await Daemon.start(root, home);
  try {
    add('warm', daemon.readyMs - bare);
    const { wakeUps, cpuMs } = await daemon.idle(idleSeconds);
    add('memory', daemon.residentMb);
    add('wakeUps', wakeUps);
    add('cpu', cpuMs);
    const list = [join(root, 'bin', 'ctl'), 'backend', 'list'];
    const lists = [0, 1, 2, 3, 4].map(() => timeOf(list, daemon.environment));
    add('list', median(lists) - bare);
    if (!hasWrk) return;
    const call = { path: '/api/v1/backends' };
    // A server that has just started still compiles its hot code.
    await wrk(home, daemon.url, call, { clients: 64, seconds: Math.min(2, seconds) });
    const before = daemon.cpuMs;
    const { perSecond } = await wrk(home, daemon.url, call, { clients: 64, seconds });
    add('reads', perSecond);
    if (before !== undefined) add('callCpu', (daemon.cpuMs - before) / (perSecond * seconds));
    add('loadedMemory', daemon.residentMb);
  } finally {
    await daemon.stop();
  }
}

async function measurePermission(root, home) {
  const daemon = await Daemon.start(root, home, { PATH: installAgent(home) });
  try {
    return median(await permissionWaits(daemon.url, home));
  } finally {
    await daemon.stop();
  }
}

function timeOf(args, env) {
  const startedAt = performance.now();
  const { status, stderr } = spawnSync(process.execPath, args, { env });
  const tookMs = performance.now() - startedAt;
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}: ${stderr}`);
  return tookMs;
}

function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
}

function judge(results) {
  const of = (name) => results.of(measures[name], ours);
  return [
    below('memory when idle, MB', 90, of('memory')),
    below('first start to /healthz over node, ms', 400, of('cold')),
    below('ctl backend list over node, ms', 150, of('list')),
    below(measures.permission, 200, of('permission')),
    below(measures.redraw, 50, of('redraw')),
    atLeast('GET /api/v1/backends, calls/s', 8_000, of('reads')),
  ];
}

function describe({ args, values, machine, rows, verdicts }) {
  const lines = [
    ...heading({ title: 'The daemon alone', name: 'daemon', args, machine }),
    '',
    'Each round starts `ctl daemon serve` with its defaults on an empty home, stops it, starts it',
    'again, leaves it alone for a while and then reads the registry with wrk, which shares the',
    'machine: for two seconds that do not count, and then for those that do. A wake-up is a',
    'voluntary context switch of any of its threads. The permission is requested by an agent over',
    'ACP and answered over REST as soon as the event arrives; the figure is what the agent waits.',
    '',
    `At the end, once: ${values.gigabytes} GB of claude transcripts in ${values.files} files, read by a new daemon;`,
    `then ${values.sessions} sessions of a headless agent, of which ${values.live} go on running; then the daemon is`,
    'started again and measured when it has read everything.',
    '',
    markdown(rows),
    '',
    '## Targets',
    '',
    markdown(verdicts),
  ];
  return `${lines.join('\n')}\n`;
}
