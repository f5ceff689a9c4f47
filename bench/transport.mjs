import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { fillMillrace } from './db-server/fill.mjs';
import { h2load } from './db-server/load-tools.mjs';
import { millraceCalls } from './db-server/messages.mjs';
import { startMillrace } from './db-server/servers.mjs';
import { hasCommand } from './shared/processes.mjs';
import { Results } from './shared/results.mjs';
import { httpClients } from './transport/http-clients.mjs';
import { startHandler } from './transport/handler.mjs';

export const summary =
  'our HTTP/2 server, and our HTTP/1.1 client beside node:http and bare undici';

/** `help` is for `npm run bench -- NAME --help`. */
export const options = {
  rounds: { type: 'string', default: '5', help: 'Rounds' },
  seconds: { type: 'string', default: '4', help: 'Seconds of each load' },
};

const runFile = promisify(execFile);
const watchLoad = fileURLToPath(new URL('./db-server/watch-load.mjs', import.meta.url));
const clients = 64;

/** The HTTP/1.1 clients take turns within a round, so that all share its noise. */
export async function run({ args, root, report, note }) {
  const { values } = parseArgs({ args, options });
  if (!hasCommand('h2load')) throw new Error('h2load is missing: apt-get install nghttp2-client');
  const loads = { rounds: Number(values.rounds), seconds: Number(values.seconds) };
  const servers = await measureServer(root, loads, note);
  report('HTTP/2 server under gRPC; the median of the rounds', servers.table(['own']));
  const http = await measureClients(loads, note);
  report('HTTP/1.1 client, POST per second, 64 in flight', http.table(Object.keys(httpClients)));
}

async function measureServer(root, { rounds, seconds }, note) {
  const results = new Results();
  const home = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  chmodSync(home, 0o755);
  const server = await startMillrace(root, home);
  try {
    await fillMillrace(server, 1_000);
    for (let round = 1; round <= rounds; round++) {
      await measureCalls(results, server.grpc, home, seconds);
      note(`server, round ${round} of ${rounds}: load average ${loadavg()[0].toFixed(1)}`);
    }
  } finally {
    await server.stop();
    rmSync(home, { recursive: true, force: true });
  }
  return results;
}

async function measureCalls(results, url, home, seconds) {
  const how = { clients, seconds };
  const insert = await h2load(home, url, millraceCalls.insert(1), how);
  results.add('durable insert, 64 clients, per s', 'own', insert.perSecond);
  const read = await h2load(home, url, millraceCalls.read('k1'), how);
  results.add('read by key, 64 clients, per s', 'own', read.perSecond);
  const pace = [watchLoad, 'millrace', url, 100, 1_000, seconds].map(String);
  const watch = JSON.parse((await runFile(process.execPath, pace)).stdout);
  results.add('100 watchers, commits accepted per s', 'own', watch.paced);
  results.add('100 watchers, p99 in ms', 'own', watch.p99);
}

async function measureClients({ rounds, seconds }, note) {
  const results = new Results();
  const handler = await startHandler();
  try {
    for (let round = 1; round <= rounds; round++) {
      const names = Object.keys(httpClients);
      for (const name of round % 2 === 1 ? names : names.toReversed()) {
        const client = await httpClients[name](handler.url);
        results.add('POST of 300 bytes', name, await rate(client.post, seconds));
        await client.close();
      }
      note(`clients, round ${round} of ${rounds}: load average ${loadavg()[0].toFixed(1)}`);
    }
  } finally {
    handler.stop();
  }
  return results;
}

async function rate(post, seconds) {
  let done = 0;
  const start = performance.now();
  const end = start + seconds * 1_000;
  const caller = async () => {
    for (; performance.now() < end; done++) await post();
  };
  await Promise.all(Array.from({ length: clients }, caller));
  return (done * 1_000) / (performance.now() - start);
}
