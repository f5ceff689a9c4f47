import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { document } from './db-server/messages.mjs';
import { startMillrace } from './db-server/servers.mjs';
import { heading, markdown, percentile, Results } from './shared/results.mjs';

export const summary = 'what followers and min_acks cost the writers of the database';

const clusters = {
  'no followers': { followers: 0, minAcks: 0 },
  'min_acks 0': { followers: 2, minAcks: 0 },
  'min_acks 1': { followers: 2, minAcks: 1 },
  'min_acks 2': { followers: 2, minAcks: 2 },
};

const help = `npm run bench -- replication [options]

  --rounds N     how often each cluster is measured; the median counts (5)
  --seconds N    how long each load lasts (4)
  --help         this text

Durable inserts by one client process, with two followers on the same machine and disk.
bench/results/replication.md is written only with 5 rounds or more.`;

export async function run({ args, root, machine, report, note }) {
  const { values } = parseArgs({
    args,
    options: {
      help: { type: 'boolean', default: false },
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '4' },
    },
  });
  if (values.help) return note(help);
  const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
  const home = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  const started = [];
  const results = new Results();
  try {
    for (const [name, cluster] of Object.entries(clusters)) {
      const options = { ...cluster, seconds };
      started.push(await startCluster(root, join(home, `c${started.length}`), name, options));
    }
    for (let round = 1; round <= rounds; round++) {
      const turn = round % 2 === 1 ? started : started.toReversed();
      for (const { name, people } of turn) {
        for (const callers of [1, 64]) {
          const times = await insertFor(people, callers, seconds);
          const what = `${callers} ${callers === 1 ? 'caller' : 'callers'}`;
          results.add(`${what}, inserts/s`, name, times.length / seconds);
          results.add(`${what}, p50 ms`, name, percentile(times, 0.5));
          results.add(`${what}, p99 ms`, name, percentile(times, 0.99));
        }
      }
      note(`round ${round} of ${rounds}: load average ${loadavg()[0].toFixed(1)}`);
    }
  } finally {
    for (const { stop } of started) await stop();
    rmSync(home, { recursive: true, force: true });
  }
  const rows = results.table(Object.keys(clusters));
  report('The median of the rounds', rows);
  if (rounds < 5) return;
  mkdirSync(join(root, 'bench', 'results'), { recursive: true });
  writeFileSync(
    join(root, 'bench', 'results', 'replication.md'),
    describe({ args, machine, rows }),
  );
  note('Written to bench/results/replication.md');
}

/** A leader, its followers that have caught up, and a client of the leader. */
async function startCluster(root, home, name, { followers, minAcks, seconds }) {
  const nodes = [];
  const start = async (flags) => {
    const directory = join(home, `n${nodes.length}`);
    mkdirSync(directory, { recursive: true });
    nodes.push(await startMillrace(root, directory, flags));
    return nodes.at(-1);
  };
  const leader = await start(['--min-acks', String(minAcks)]);
  const address = leader.grpc.replace(/^http:/, 'grpc:');
  for (let n = 0; n < followers; n++) await start(['--follow', address]);
  await until(async () => (await statusOf(leader)).followers.length === followers);
  const { connect } = await import('@millrace/db/client');
  const db = await connect(address);
  const people = db.collection('people');
  await insertFor(people, 64, Math.min(1, seconds));
  const stop = async () => {
    await db.close();
    for (const node of nodes.toReversed()) await node.stop();
  };
  return { name, people, stop };
}

async function statusOf({ http }) {
  return (await fetch(`${http}/v1/admin/replication`)).json();
}

async function until(isTrue) {
  for (let tries = 0; tries < 200; tries++) {
    if (await isTrue()) return;
    await sleep(100);
  }
  throw new Error('the followers did not connect within 20 s');
}

/** Milliseconds of each insert, in ascending order. */
async function insertFor(people, callers, seconds) {
  const times = [];
  const end = performance.now() + seconds * 1_000;
  let number = 0;
  const loop = async () => {
    for (let at = performance.now(); at < end; at = performance.now()) {
      await people.insert(document(number++));
      times.push(performance.now() - at);
    }
  };
  await Promise.all(Array.from({ length: callers }, loop));
  return times.toSorted((a, b) => a - b);
}

function describe({ args, machine, rows }) {
  const lines = [
    ...heading({ title: 'Followers and min_acks', name: 'replication', args, machine }),
    '',
    'Durable inserts of 300 bytes by one client process. Leader and followers share the cores and the',
    'disk of one machine, so the throughput of three machines is higher, and the network adds its',
    'round trip to the latency.',
    '',
    markdown(rows),
  ];
  return `${lines.join('\n')}\n`;
}
