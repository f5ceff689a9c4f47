import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startBase } from './queue/contestants.mjs';
import { hasCommand } from './shared/processes.mjs';
import { heading, markdown, Results } from './shared/results.mjs';
import { startQueue } from './workers/contestants.mjs';

export const summary = 'workers in Python and Go, beside Celery and RQ on Redis';

export const options = {
  tasks: { type: 'string', default: '5000', help: 'How many tasks wait for the worker (5000)' },
  rounds: { type: 'string', default: '3', help: 'How often; the median counts (3)' },
};

const submitted = 'submitted by one process, tasks/s';
const handled = 'worked off by one worker, tasks/s';
const cpu = 'CPU of the worker, ms per 1,000 tasks';

/** Each contestant submits with its own SDK, then works off what waits. */
export async function run({ args, root, machine, report, note }) {
  const { values } = parseArgs({ args, options });
  const count = Number(values.tasks);
  const home = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  const queue = await startQueue(root, join(home, 'queue'));
  const contestants = millrace(root, home, queue.connection, note);
  const peers = interpreterWithPeers();
  let redis;
  const results = new Results();
  try {
    if (peers && hasCommand('redis-server')) {
      redis = await startBase('bullmq', home);
      const { host, port } = redis.connection;
      for (const name of ['celery', 'rq']) {
        const command = [peers, join(root, 'bench/sdks/peers.py'), name];
        const env = { BENCH_REDIS: `redis://${host}:${port}/${name === 'rq' ? 1 : 0}` };
        contestants.push({ name, command, env });
      }
    } else {
      note('Without Celery and RQ: apt-get install python3-celery python3-rq redis-server');
    }
    for (let round = 1; round <= Number(values.rounds); round++) {
      for (const contestant of round % 2 === 1 ? contestants : contestants.toReversed()) {
        const first = runSide(root, contestant, 'submit', count);
        const second = runSide(root, contestant, 'work', count);
        results.add(submitted, contestant.name, count / first.seconds);
        results.add(handled, contestant.name, count / second.seconds);
        results.add(cpu, contestant.name, (second.cpuMs / count) * 1_000);
      }
      note(`round ${round} of ${values.rounds}: load average ${loadavg()[0].toFixed(1)}`);
    }
  } finally {
    await redis?.stop();
    await queue.stop();
    rmSync(home, { recursive: true, force: true });
  }
  const names = contestants.map(({ name }) => name);
  const rows = results.table(names);
  report('The median of the rounds', rows);
  if (names.length < 4) return;
  mkdirSync(join(root, 'bench', 'results'), { recursive: true });
  writeFileSync(join(root, 'bench', 'results', 'sdks.md'), describe({ args, machine, rows }));
  note('Written to bench/results/sdks.md');
}

function millrace(root, home, { url, token }, note) {
  const env = { MILLRACE_URL: url, MILLRACE_TOKEN: token, BENCH_QUEUE: 'bench' };
  const contestants = [];
  if (hasCommand('python3')) {
    const command = ['python3', '-B', join(root, 'bench/sdks/millrace_worker.py')];
    const sdk = { MILLRACE_SDK: join(root, 'sdks/python/src') };
    contestants.push({ name: 'Python', command, env: { ...env, ...sdk } });
  }
  if (hasCommand('go')) {
    const program = join(home, 'worker');
    const built = spawnSync('go', ['build', '-o', program, '.'], {
      cwd: join(root, 'bench/sdks/go'),
      encoding: 'utf8',
    });
    if (built.status !== 0) throw new Error(built.stderr);
    contestants.push({ name: 'Go', command: [program], env });
  }
  if (contestants.length < 2) note('python3 and go are needed for both SDKs.');
  return contestants;
}

/** Debian's packages belong to its own Python. */
function interpreterWithPeers() {
  return ['python3', '/usr/bin/python3'].find(
    (each) => spawnSync(each, ['-c', 'import celery, rq']).status === 0,
  );
}

/** From the start of the process to its end; its CPU includes that of its own processes. */
function runSide(root, { name, command, env }, action, count) {
  const startedAt = performance.now();
  const [program, ...args] = [...command, action];
  // `times` of the shell: CPU of what it ran.
  const shell = ['-c', '"$0" "$@"; code=$?; times >&2; exit $code', program, ...args];
  const ended = spawnSync('sh', shell, {
    cwd: join(root, 'bench/sdks'),
    env: { ...process.env, ...env, BENCH_COUNT: String(count), PYTHONDONTWRITEBYTECODE: '1' },
    encoding: 'utf8',
  });
  if (ended.status !== 0) throw new Error(`${name} ${action}: ${ended.stderr}`);
  const seconds = (performance.now() - startedAt) / 1_000;
  const last = ended.stderr.trim().split('\n').at(-1);
  const cpuMs = [...last.matchAll(/(\d+)m([\d.]+)s/g)].reduce(
    (sum, [, minutes, rest]) => sum + (Number(minutes) * 60 + Number(rest)) * 1_000,
    0,
  );
  return { seconds, cpuMs };
}

function describe({ args, machine, rows }) {
  const lines = [
    ...heading({ title: 'Workers in Python and Go', name: 'sdks', args, machine }),
    '',
    'Every task is on disk before its submit is answered; Redis has appendfsync always. Handlers add',
    'one to a number. Millrace runs 32 handlers at a time in one process (Python: threads) and submits',
    'in batches, as its SDKs do; Celery runs its default, one process for each core, and acknowledges',
    'late; RQ runs its SimpleWorker, which does not fork for each task. The start of the worker counts.',
    '',
    markdown(rows),
  ];
  return `${lines.join('\n')}\n`;
}
