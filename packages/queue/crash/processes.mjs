// The server and the workers of a crash campaign.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const ctl = fileURLToPath(new URL('../../../bin/ctl', import.meta.url));
const postgresProgram = fileURLToPath(
  new URL('../test/postgres/programs/postgres.mjs', import.meta.url),
);
const workerProgram = fileURLToPath(new URL('worker.mjs', import.meta.url));
export const flowProgram = fileURLToPath(new URL('flow-worker.mjs', import.meta.url));
const producerProgram = fileURLToPath(new URL('producer.mjs', import.meta.url));

export const token = 'token-of-the-campaign';
export const leaseMs = 2_000;
const maxRunMs = 30;

export const queueConfig = {
  callback: { protocol: 'pull' },
  retry: { initial_backoff_ms: 10, max_backoff_ms: 10, max_attempts: 1_000 },
  limits: { max_in_flight: 1_000 },
};

/** Runs the rounds of a campaign. Throws an error that says how to repeat them. */
export async function runCampaign(run, { rounds, seed, store = 'embedded' }) {
  const home = mkdtempSync(join(tmpdir(), 'millrace-queue-crash-'));
  let keep = false;
  try {
    await run.begin(home, store);
    for (let round = 0; round < rounds; round++) await run.round(round);
    await run.finish();
    return run.tally;
  } catch (error) {
    keep = true;
    throw new Error(`${error.message}\nseed ${seed}, files kept in ${home}`, { cause: error });
  } finally {
    await run.end();
    if (!keep) rmSync(home, { recursive: true, force: true });
  }
}

/** One server on the embedded store, or two on one PostgreSQL, which the campaign removes. */
export async function startServers(campaign, home, store, servers) {
  if (store === 'postgres') campaign.postgres = await startPostgres();
  for (const name of store === 'postgres' ? ['one', 'two'] : ['one']) {
    const settings = await writeSettings(join(home, name), campaign.postgres?.url ?? 'embedded');
    servers.push({ ...settings, process: await startQueueServer(settings.file) });
  }
}

/** A durable PostgreSQL of its own, which goes with this process. */
async function startPostgres() {
  const child = spawn(process.execPath, [postgresProgram, '--durable'], {
    env: { ...process.env, NODE_OPTIONS: '' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const remove = () => {
    child.stdin.end();
    return ended;
  };
  const lines = createInterface({ input: child.stdout });
  const next = async () => JSON.parse((await once(lines, 'line'))[0]);
  const { port } = await next();
  /** Ends it without a shutdown, and starts it again. */
  const crash = async () => {
    for (const word of ['crash', 'start']) {
      child.stdin.write(`${word}\n`);
      await next();
    }
  };
  return { url: `postgres://postgres:password@127.0.0.1:${port}/postgres`, remove, crash };
}

/** Settings of the server; its port stays, so that workers find it again. */
async function writeSettings(home, storage) {
  const port = await freePort();
  mkdirSync(join(home, 'data'), { recursive: true, mode: 0o700 });
  const grants = [{ queue: '*', role: 'admin' }];
  const hash = createHash('sha256').update(token).digest('hex');
  const tokens = [{ id: 'all', principal: 'all', token_sha256: hash, grants }];
  writeFileSync(join(home, 'tokens.yaml'), JSON.stringify({ tokens }), { mode: 0o600 });
  const settings = {
    listen: `127.0.0.1:${port}`,
    metrics_listen: '127.0.0.1:0',
    data: './data',
    storage,
    tokens_file: 'tokens.yaml',
    shed_target_ms: 0,
  };
  const file = join(home, 'queue.yaml');
  writeFileSync(file, JSON.stringify(settings));
  return { file, url: `http://127.0.0.1:${port}` };
}

export async function startQueueServer(file) {
  const server = start([ctl, 'queue', 'serve', `--config=${file}`]);
  for await (const line of createInterface({ input: server.child.stdout })) {
    // The metrics listener may be first.
    if (JSON.parse(line).listener !== 'http') continue;
    server.child.stdout.resume();
    return server;
  }
  throw new Error(`The server did not start: ${server.errors()}`);
}

/** `onStart` is called for every task that it starts, or every step of a flow. */
export function startWorkerProcess(url, name, onStart, program = workerProgram) {
  const worker = start([program, url, token, name, String(leaseMs), String(maxRunMs)]);
  const lines = createInterface({ input: worker.child.stdout });
  lines.on('line', (line) => {
    // The last line of a killed process may be cut.
    if (line.endsWith('}')) onStart(JSON.parse(line));
  });
  const read = once(lines, 'close');
  return { ...worker, kill: () => Promise.all([worker.kill(), read]) };
}

/** `onAccepted` is called with the ids of tasks that the queue took. */
export function startProducerProcess(urls, onAccepted) {
  const producer = start([producerProgram, token, ...urls]);
  const lines = createInterface({ input: producer.child.stdout });
  lines.on('line', (line) => {
    if (line.endsWith('}')) onAccepted(JSON.parse(line).ids);
  });
  const read = once(lines, 'close');
  return { ...producer, kill: () => Promise.all([producer.kill(), read]) };
}

function start(args) {
  // The environment would override the settings of the file.
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('MILLRACE_'));
  const child = spawn(process.execPath, args, {
    env: { ...Object.fromEntries(inherited), NODE_OPTIONS: '' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (text) => (errors = `${errors}${text}`.slice(-4_000)));
  const ended = once(child, 'exit');
  const kill = () => {
    child.kill('SIGKILL');
    return ended;
  };
  return { child, kill, errors: () => errors, hasEnded: () => child.exitCode !== null };
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
