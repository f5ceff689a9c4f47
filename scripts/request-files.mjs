/**
 * Counts the source files of ours that execute between a request and its response: it starts the
 * built servers as processes and reads V8's coverage before and after one request. A file counts
 * that executes in each of several runs, so timers in the background do not.
 *
 * `node scripts/request-files.mjs` prints the counts and fails when one is above that of
 * request-files.json; `--update` writes them there and into docs/explanation/request-paths.md; `--files` lists the files.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { format } from 'prettier';
import { prepare, root, say } from './prepare.mjs';
import { countsOf, listOf, pageWith, problemsOf, totalOf } from './request-page.mjs';

const page = join(root, 'docs', 'explanation', 'request-paths.md');
const figures = join(root, 'scripts', 'request-files.json');
const warmUps = 3;
const runs = 5;
const token = 'mq_request-files-0123456789abcdef';
const home = realpathSync(mkdtempSync(join(tmpdir(), 'millrace-request-files-')));
const endings = [];
/** Timers that may fire in the second an agent needs to start and to end. */
const timers = [
  'daemon/events/reports',
  'engine/write/expiry',
  'engine/storage/file/in-place',
  'engine/storage/file/directory',
];

if (!process.argv.includes('--built')) prepare();
const measured = {};
try {
  await measureQueue('embedded', { submit: true });
  await measureQueue(await startPostgres(), { submit: false });
  await measureInsert();
  await measureDaemon();
} finally {
  await Promise.all(endings.toReversed().map((end) => end()));
  rmSync(home, { recursive: true, force: true });
}
process.exitCode = (await report()) ? 0 : 1;

async function measureQueue(storage, { submit }) {
  const name = submit ? 'embedded' : 'postgres';
  const tokensFile = join(home, 'tokens.yaml');
  const sha256 = createHash('sha256').update(token).digest('hex');
  const grants = [{ queue: '*', role: 'admin' }];
  const tokens = [{ id: 'a', principal: 'a', token_sha256: sha256, grants }];
  writeFileSync(tokensFile, JSON.stringify({ tokens }));
  const server = await startServer('queue', {
    listen: '127.0.0.1:0',
    'metrics-listen': '127.0.0.1:0',
    data: join(home, `queue-${name}`),
    'tokens-file': tokensFile,
    storage,
  });
  const call = caller(server.url(), token);
  const config = { callback: { protocol: 'pull' } };
  await call('PUT', '/v1/admin/queues/mail/config', config);
  const task = {
    handler_ref: 'mail.send',
    payload: Buffer.from('{"to":"ada"}').toString('base64'),
  };
  const add = () => call('POST', '/v1/queues/mail/tasks', task);
  const claim = async () => {
    const { tasks } = await call('POST', '/v1/queues/mail/tasks:claim', { worker: 'w1', limit: 1 });
    if (tasks.length !== 1) throw new Error(`The claim returned ${tasks.length} tasks`);
  };
  if (submit) await measure('Submit a task', server, { request: add });
  const title = submit ? 'Claim by a worker' : 'Claim by a worker on PostgreSQL';
  await measure(title, server, { before: add, request: claim });
}

async function measureInsert() {
  const server = await startServer('db', {
    grpc: '127.0.0.1:0',
    http: '127.0.0.1:0',
    data: join(home, 'db'),
    auth: 'none',
  });
  const { connect } = await import('../packages/db/dist/client/index.js');
  const db = await connect(server.url('grpc'));
  endings.push(() => db.close());
  const people = db.collection('people');
  let age = 0;
  await measure('Insert a record over gRPC', server, {
    request: () => people.insert({ name: 'Ada', age: ++age }),
  });
}

async function measureDaemon() {
  const bin = join(home, 'bin');
  const work = join(home, 'work');
  mkdirSync(bin);
  mkdirSync(work);
  const agent = join(root, 'packages', 'daemon', 'dist', 'fake-agent', 'main.js');
  writeFileSync(join(bin, 'claude'), `#!/bin/sh\nexec '${process.execPath}' '${agent}' "$@"\n`);
  chmodSync(join(bin, 'claude'), 0o755);
  const server = await startServer(
    'daemon',
    {
      listen: '127.0.0.1:0',
      data: join(home, 'daemon'),
      auth: 'none',
      'backends-local-url': 'http://127.0.0.1:9',
    },
    { HOME: home, PATH: `${bin}:${process.env.PATH}` },
  );
  const url = server.url();
  const call = caller(url);
  await measure('Start an agent', server, {
    ignored: timers,
    // One that executes while the question is answered is missed in that run.
    needed: 3,
    request: async (note) => {
      const body = { prompt: 'say done', backend: 'claude', driver: 'headless', cwd: work };
      const { id } = await call('POST', '/api/v1/spawn', body);
      // What the question itself executes is left out.
      for (let isOver = false; !isOver; await server.executed()) {
        await sleep(100);
        note(await server.executed());
        isOver = (await call('GET', `/api/v1/sessions/${id}`)).status === 'done';
      }
    },
  });
  await measure('Load the dashboard', server, {
    request: async () => {
      const html = await (await fetch(url)).text();
      const links = Array.from(
        html.matchAll(/(?:src|href)="([^"]+\.(?:js|css))"/g),
        ([, to]) => to,
      );
      if (links.length === 0) throw new Error('The page of the dashboard names no script');
      for (const link of links) await (await fetch(new URL(link, url))).arrayBuffer();
    },
  });
}

/** The smallest of up to three measurements: load can let a timer fire in each run of one. */
async function measure(title, server, request) {
  const limit = totalOf(noted()[title] ?? {});
  for (let attempt = 0; attempt < 3 && !(measured[title]?.length <= limit); attempt++) {
    const files = await filesOf(server, request);
    if (!(files.length >= measured[title]?.length)) measured[title] = files;
  }
}

/** The files that execute in at least `needed` of the runs of a request. */
async function filesOf(
  server,
  { before = async () => undefined, request, needed = runs, ignored = [] },
) {
  const seen = new Map();
  for (let run = -warmUps; run < runs; run++) {
    await before();
    const files = new Set();
    const note = (found) => found.forEach((file) => files.add(file));
    await server.executed();
    await request(note);
    note(await server.executed());
    if (run < 0) continue;
    for (const file of files) seen.set(file, (seen.get(file) ?? 0) + 1);
  }
  const counted = [...seen].filter(([file, times]) => times >= needed && !ignored.includes(file));
  return counted.map(([file]) => String(file)).toSorted();
}

async function startServer(part, flags, environment = {}) {
  const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  const program = join(root, 'scripts', 'covered-server.mjs');
  const child = spawn(process.execPath, [program, part, ...args], {
    env: { ...process.env, NODE_OPTIONS: '', ...environment },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  let log = '';
  child.stderr.on('data', (text) => (log = (log + text).slice(-10_000)));
  const ended = new Promise((resolve) => child.on('exit', resolve));
  endings.push(() => (child.connected && child.disconnect(), ended));
  const received = async (key) => {
    const message = await Promise.race([once(child, 'message'), ended]);
    if (!Array.isArray(message)) throw new Error(`The ${part} server ended:\n${log}`);
    return message[0][key];
  };
  const listeners = await received('listeners');
  return {
    url: (name) => listeners.find(({ listener }) => !name || listener === name).url,
    executed: () => (child.send('take'), received('files')),
  };
}

function startPostgres() {
  const path = ['packages', 'queue', 'test', 'postgres', 'programs', 'postgres.mjs'];
  const child = spawn(process.execPath, [join(root, ...path)], {
    env: { ...process.env, NODE_OPTIONS: '' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => child.on('exit', resolve));
  endings.push(() => (child.stdin.end(), ended));
  return new Promise((resolve, reject) => {
    child.once('exit', () => reject(new Error('PostgreSQL did not start')));
    createInterface({ input: child.stdout }).once('line', (line) => {
      resolve(`postgres://postgres:password@127.0.0.1:${JSON.parse(line).port}/postgres`);
    });
  });
}

function caller(url, bearer) {
  return async (method, path, body) => {
    const response = await fetch(new URL(path, url), {
      method,
      headers: {
        'content-type': 'application/json',
        ...(bearer && { authorization: `Bearer ${bearer}` }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text);
  };
}

/** Prints the counts. False when one grew, or when the page is wrong. */
async function report() {
  const now = Object.fromEntries(
    Object.entries(measured).map(([title, files]) => [title, countsOf(files)]),
  );
  for (const [title, counts] of Object.entries(now)) {
    console.log(`${totalOf(counts)} files: ${title} (${listOf(counts)})`);
    if (process.argv.includes('--files')) console.log(`  ${measured[title].join('\n  ')}`);
  }
  if (process.argv.includes('--update')) {
    writeFileSync(figures, await format(JSON.stringify(now), { parser: 'json' }));
    writeFileSync(page, await pageWith(readFileSync(page, 'utf8'), now));
  }
  const problems = await problemsOf(measured, noted(), readFileSync(page, 'utf8'));
  for (const problem of problems) say(problem);
  return problems.length === 0;
}

function noted() {
  return existsSync(figures) ? JSON.parse(readFileSync(figures, 'utf8')) : {};
}
