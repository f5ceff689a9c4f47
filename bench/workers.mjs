import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { installPeers, versionOf } from './engine/peers.mjs';
import { missing } from './queue/contestants.mjs';
import { cpuUsOf } from './shared/processes.mjs';
import { atLeast, below, heading, markdown, percentile, Results } from './shared/results.mjs';
import { startContestant, startTwoServers } from './workers/contestants.mjs';

export const summary = 'SDK workers beside BullMQ, pg-boss and graphile-worker, by their own SDKs';

/** A short run has short pauses too. */
const settlingMs = (seconds) => Math.min(3_000, seconds * 600);
/** Long enough that the code of servers and SDKs is compiled: before that, rounds differ by a third. */
const warmUpSeconds = (seconds) => Math.min(4, seconds);
const peerNames = ['bullmq', 'pg-boss', 'graphile-worker'];
const measures = {
  endToEnd: 'submitted by 64 loops and handled, tasks/s',
  cpu: 'the same, CPU of server, submitter and worker, us/task',
  backlog: 'worked off a backlog, tasks/s',
  latency: 'submit to handler at 200 tasks/s, p50 ms',
  lateLatency: 'submit to handler at 200 tasks/s, p99 ms',
  farLatency: 'the same, submitted to another server on PostgreSQL, p50 ms',
  lateFarLatency: 'the same, submitted to another server on PostgreSQL, p99 ms',
  idle: 'CPU of the server with 1,000 waiting workers, %',
};

const help = `npm run bench -- workers [options]

  --install      install the peers into bench/node_modules, and end
  --rounds N     how often each queue is measured; the median counts (3)
  --seconds N    how long tasks are submitted (5)
  --backlog N    tasks that wait in the measure of a backlog (20000)
  --peers LIST   peers to stand beside, by commas (${peerNames.join(',')}); "" for none
  --postgres     also the latency between two servers on one PostgreSQL
  --old ROOT     instead of the peers, an older build beside this one, and their ratio
  --help         this text

bench/results/workers.md is written only with all peers.`;

/** Durable settings for all; each queue is submitted to and worked on by its own SDK. */
export async function run({ args, root, machine, report, note }) {
  const { values } = parseArgs({
    args,
    options: {
      help: { type: 'boolean', default: false },
      install: { type: 'boolean', default: false },
      rounds: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '5' },
      backlog: { type: 'string', default: '20000' },
      peers: { type: 'string', default: peerNames.join(',') },
      postgres: { type: 'boolean', default: false },
      old: { type: 'string' },
    },
  });
  if (values.help) return note(help);
  if (values.install) return installPeers(note);
  const seconds = Number(values.seconds);
  const old = values.old === undefined ? undefined : resolve(values.old);
  if (old !== undefined && !existsSync(join(old, 'bin', 'ctl'))) {
    throw new Error(`${old} has no bin/ctl: build it first`);
  }
  const home = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  chmodSync(home, 0o755);
  const queues = [];
  const pairs = [];
  const results = new Results();
  try {
    queues.push(await startContestant('millrace', root, home));
    if (old !== undefined) queues.push(await startContestant('millrace', old, home, 'old'));
    for (const kind of old === undefined ? values.peers.split(',').filter(Boolean) : []) {
      const problem = missing(kind);
      if (problem) note(`Without ${kind}: ${problem}`);
      else queues.push(await startContestant(kind, root, home));
    }
    if (values.postgres) {
      pairs.push(await startTwoServers(root, home, 'millrace'));
      if (old !== undefined) pairs.push(await startTwoServers(old, home, 'old'));
    }
    for (const queue of [...queues, ...pairs]) await endToEnd(queue, warmUpSeconds(seconds));
    for (let round = 1; round <= Number(values.rounds); round++) {
      // Alternates the order, so that no queue always runs after the same one.
      const turn = round % 2 === 1 ? queues : queues.toReversed();
      for (const queue of turn) {
        const { perSecond, cpuUs } = await endToEnd(queue, seconds);
        results.add(measures.endToEnd, queue.name, perSecond);
        if (queue.pid) results.add(measures.cpu, queue.name, cpuUs);
        results.add(measures.backlog, queue.name, await workOff(queue, Number(values.backlog)));
        const times = await latencies(queue, seconds);
        results.add(measures.latency, queue.name, percentile(times, 0.5));
        results.add(measures.lateLatency, queue.name, percentile(times, 0.99));
        await sleep(settlingMs(seconds));
      }
      for (const pair of round % 2 === 1 ? pairs : pairs.toReversed()) {
        const times = await latencies(pair, seconds);
        results.add(measures.farLatency, pair.name, percentile(times, 0.5));
        results.add(measures.lateFarLatency, pair.name, percentile(times, 0.99));
      }
      note(`round ${round} of ${values.rounds}: load average ${loadavg()[0].toFixed(1)}`);
    }
    // The last: these workers would take the tasks of the other measures.
    results.add(measures.idle, 'millrace', await idleCpu(queues[0], seconds));
  } finally {
    for (const each of [...queues, ...pairs]) await each.stop();
    rmSync(home, { recursive: true, force: true });
  }
  const names = queues.map(({ name }) => name);
  const rows = results.table(names).map((row) => {
    const ratio = results.of(row.measure, 'millrace') / results.of(row.measure, 'old');
    const text = Number.isFinite(ratio) ? ratio.toFixed(2) : '-';
    return old === undefined ? row : { ...row, 'new / old': text };
  });
  report('The median of the rounds', rows);
  const verdicts = judge(results);
  report('Targets', verdicts);
  if (names.length <= peerNames.length) return;
  mkdirSync(join(root, 'bench', 'results'), { recursive: true });
  const file = join(root, 'bench', 'results', 'workers.md');
  writeFileSync(file, describe({ args, machine, rows, verdicts }));
  note('Written to bench/results/workers.md');
}

/** From the first submit until the last task was handled. */
async function endToEnd({ submitter, worker, pid, cpuUs }, seconds) {
  await worker.ask('work');
  const before = await worker.ask('handled');
  const startedAt = performance.now();
  const cpuBefore = pid ? cpuUs() : 0;
  await submitter.ask('start');
  await sleep(seconds * 1_000);
  await submitter.ask('finish');
  const handled = await quietCount(worker);
  const count = handled.count - before;
  const used = pid ? cpuUs() - cpuBefore : 0;
  await worker.ask('rest');
  return { perSecond: count / ((handled.at - startedAt) / 1_000), cpuUs: used / count };
}

async function workOff({ submitter, worker }, count) {
  await submitter.ask('fill', { count });
  const before = await worker.ask('handled');
  const startedAt = performance.now();
  await worker.ask('work');
  const handled = await quietCount(worker, before + count);
  await worker.ask('rest');
  return (handled.count - before) / ((handled.at - startedAt) / 1_000);
}

/** From the submit until the handler runs, in ascending order. */
async function latencies({ submitter, worker }, seconds) {
  await worker.ask('work');
  // Their first claims are under way.
  await sleep(settlingMs(seconds));
  await submitter.ask('pace', { perSecond: 200, seconds });
  await quietCount(worker);
  await worker.ask('rest');
  return worker.ask('latencies');
}

/** In percent of one core. */
async function idleCpu({ submitter, pid }, seconds) {
  await submitter.ask('wait', { count: 1_000 });
  await sleep(settlingMs(seconds));
  const [before, startedAt] = [cpuUsOf(pid), performance.now()];
  await sleep(seconds * 1_000);
  return (cpuUsOf(pid) - before) / 10 / (performance.now() - startedAt);
}

const pollMs = 20;
const quietMs = 2_000;

/** The count once it stays for two seconds, or reaches `expected`; and when it got there. */
async function quietCount(worker, expected = Infinity) {
  let count = -1;
  let at = performance.now();
  for (;;) {
    const now = await worker.ask('handled');
    if (now !== count) [count, at] = [now, performance.now()];
    if (count >= expected || performance.now() - at > quietMs) return { count, at };
    await sleep(pollMs);
  }
}

function judge(results) {
  const of = (name) => results.of(measures.endToEnd, name);
  return [
    atLeast('end to end / BullMQ', 2, of('millrace') / of('bullmq')),
    atLeast('end to end / pg-boss', 3, of('millrace') / of('pg-boss')),
    atLeast('end to end / graphile-worker', 1, of('millrace') / of('graphile-worker')),
    below('submit to handler, p99 ms', 10, results.of(measures.lateLatency, 'millrace')),
    below(
      'the same by two servers on PostgreSQL',
      25,
      results.of(measures.lateFarLatency, 'millrace'),
    ),
    below('CPU with 1,000 waiting workers, %', 1, results.of(measures.idle, 'millrace')),
  ];
}

function describe({ args, machine, rows, verdicts }) {
  const versions = peerNames.map((name) => `${name} ${versionOf(name)}`);
  const lines = [
    ...heading({ title: 'SDK workers beside their peers', name: 'workers', args, machine }),
    `- Against: ${versions.join(', ')}`,
    '',
    'Every task is on disk before its submit is answered: Redis with appendfsync always, PostgreSQL',
    'with its defaults. Payloads have 300 bytes, handlers do nothing. For each queue one process',
    'submits with 64 loops and one works with 64 tasks at a time, both by its own SDK. Millrace runs',
    'without load shedding, which the peers do not have.',
    '',
    markdown(rows),
    '',
    '## Targets',
    '',
    markdown(verdicts),
  ];
  return `${lines.join('\n')}\n`;
}
