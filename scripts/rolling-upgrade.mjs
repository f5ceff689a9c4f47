/**
 * `node scripts/rolling-upgrade.mjs --old ROOT`: upgrades queue servers on one PostgreSQL from the
 * built version in ROOT to this one while tasks are submitted to both and handled, and checks that
 * every acknowledged task is handled.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { values } = parseArgs({
  options: { old: { type: 'string' }, tasks: { type: 'string', default: '200' } },
});
const tasks = Number(values.tasks);
if (values.old === undefined || !(tasks > 0)) {
  console.error('Use: node scripts/rolling-upgrade.mjs --old ROOT [--tasks 200]');
  process.exit(2);
}
const waitMs = 120_000;
const token = 'token-of-root';
const home = mkdtempSync(join(tmpdir(), 'millrace-rolling-'));
const started = [];
const handled = new Map();
const handler = createServer((request, response) => {
  request.resume().on('end', () => {
    const id = request.headers['x-queue-task-id'];
    handled.set(id, (handled.get(id) ?? 0) + 1);
    response.writeHead(200).end();
  });
});

try {
  handler.listen(0, '127.0.0.1');
  await once(handler, 'listening');
  const result = await upgrade(`http://127.0.0.1:${handler.address().port}/`);
  console.log(JSON.stringify(result));
  process.exitCode = result.ok ? 0 : 1;
} finally {
  handler.close();
  for (const child of started.toReversed()) await stop(child);
  rmSync(home, { recursive: true, force: true });
}

async function upgrade(callback) {
  const { first } = await start([join(root, 'packages/queue/test/postgres/programs/postgres.mjs')]);
  const storage = `postgres://postgres:password@127.0.0.1:${first.port}/postgres`;
  const settings = writeSettings(storage);
  const serve = async (from, name) => {
    const data = join(home, name);
    const words = ['queue', 'serve', '--config', settings, '--data', data];
    const server = await start([join(from, 'bin/ctl'), ...words]);
    return { ...server, name, url: server.first.url, refusals: {} };
  };
  const accepted = [];
  const send = (server, count) => submit(server, count, accepted);

  const old = await serve(values.old, 'old');
  await createQueue(old, callback);
  await send(old, tasks);
  await waitForAll(accepted);
  await send(old, tasks);
  const fresh = await serve(root, 'new');
  await Promise.all([send(old, tasks), send(fresh, tasks)]);
  await stop(old.child);
  await send(fresh, tasks);
  const missing = await waitForAll(accepted);
  const again = [...handled.values()].filter((times) => times > 1).length;
  return {
    ok: missing === 0,
    accepted: accepted.length,
    handled: accepted.length - missing,
    handledTwice: again,
    refusedByOld: old.refusals,
    refusedByNew: fresh.refusals,
  };
}

/** Starts a program and waits for its first line. */
async function start(args) {
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  started.push(child);
  const lines = createInterface({ input: child.stdout });
  const ended = once(child, 'exit').then(() => undefined);
  const line = await Promise.race([once(lines, 'line').then(([text]) => text), ended]);
  if (line === undefined) throw new Error(`${args[0]} exited with ${child.exitCode}`);
  return { child, first: JSON.parse(line) };
}

async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  // PostgreSQL ends with its input, the servers by the signal.
  child.stdin.end();
  if (child.spawnargs[1].endsWith('ctl')) child.kill('SIGTERM');
  await ended;
}

function writeSettings(storage) {
  const sha256 = createHash('sha256').update(token).digest('hex');
  const grants = [{ queue: '*', role: 'admin' }];
  const tokens = [{ id: 'root', principal: 'root', token_sha256: sha256, grants }];
  writeFileSync(join(home, 'tokens.yaml'), JSON.stringify({ tokens }), { mode: 0o600 });
  const allowed = { scheme: 'http', host: '127.0.0.1', port: '*', networks: ['127.0.0.0/8'] };
  const file = join(home, 'queue.yaml');
  const settings = {
    listen: '127.0.0.1:0',
    metrics_listen: '127.0.0.1:0',
    storage,
    tokens_file: 'tokens.yaml',
    shed_target_ms: 0,
    callback_allowlist: [allowed],
    log_level: 'error',
  };
  writeFileSync(file, JSON.stringify(settings));
  return file;
}

async function createQueue({ url }, callback) {
  const response = await call(`${url}/v1/admin/queues/rolling/config`, {
    method: 'PUT',
    body: JSON.stringify({ callback: { url: callback }, lease: { grace_ms: 100 } }),
  });
  if (!response.ok) throw new Error(`no queue: ${response.status} ${await response.text()}`);
}

/** `init`: method and body. */
function call(url, init) {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  return fetch(url, { ...init, headers });
}

async function submit(server, count, accepted) {
  for (let i = 0; i < count; i++) {
    const payload = Buffer.from(`task ${i}`).toString('base64');
    const body = { handler_ref: 'a', payload, payload_content_type: 'text/plain' };
    const response = await call(`${server.url}/v1/queues/rolling/tasks`, {
      method: 'POST',
      body: JSON.stringify(body),
    });
    const answer = await response.json();
    if (response.ok) accepted.push(answer.id);
    else {
      const reason = `${response.status} ${answer.code}`;
      server.refusals[reason] = (server.refusals[reason] ?? 0) + 1;
    }
  }
}

/** Returns how many tasks were not handled in time. */
async function waitForAll(accepted) {
  const count = () => accepted.filter((id) => !handled.has(id)).length;
  for (let waited = 0; count() > 0 && waited < waitMs; waited += 100) await sleep(100);
  return count();
}
