import { spawn as start, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { afterEach, expect, test } from 'vitest';
import { ApiClient } from './support/client.js';
import { noLocalModel } from './support/daemon.js';
import { FakeClis } from './support/fake-clis.js';
import { removeSessions, type Session } from './support/sessions.js';

type Pipeline = DaemonSchema<'Pipeline'>;

const program = fileURLToPath(new URL('./programs/serve.mjs', import.meta.url));
const children: ChildProcess[] = [];
const home = realpathSync(mkdtempSync(join(tmpdir(), 'mr-pipelines-crash-')));
const clis = new FakeClis(join(home, 'bin'));
// Leaves a mark when it runs, and takes a moment.
clis.add(
  'gemini',
  `const { appendFileSync } = require('node:fs');
   const job = /^Do (\\w+)/.exec(prompt)[1];
   appendFileSync(${JSON.stringify(join(home, 'runs.txt'))}, job + '\\n');
   setTimeout(() => console.log(job + ' is done'), 300);`,
);

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  rmSync(home, { recursive: true, force: true });
});

async function serve(): Promise<{
  api: ApiClient;
  end: (signal: NodeJS.Signals) => Promise<void>;
}> {
  const flags = {
    listen: '127.0.0.1:0',
    data: join(home, 'data'),
    'backends-local-url': noLocalModel,
  };
  const child = start(
    process.execPath,
    [program, ...Object.entries(flags).map(([name, value]) => `--${name}=${value}`)],
    { env: { PATH: `${clis.path}:${process.env['PATH']}`, HOME: home } },
  );
  children.push(child);
  let [out, err] = ['', ''];
  child.stdout.on('data', (bytes: Buffer) => (out += bytes.toString()));
  child.stderr.on('data', (bytes: Buffer) => (err += bytes.toString()));
  const ended = new Promise<void>((resolve) => child.on('close', () => resolve()));
  await expect
    .poll(() => (out.includes('\n') ? '' : `no line yet: ${err.slice(-500)}`), { timeout: 150_000 })
    .toBe('');
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    await ended;
  };
  return { api: new ApiClient(JSON.parse(out.split('\n')[0]!).url as string), end };
}

function marks(): string[] {
  const file = join(home, 'runs.txt');
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
}

/** Kills the daemon each time this number of further jobs has started. */
test('however often the daemon is killed, no job is started twice and the pipeline ends', async () => {
  const jobs = Array.from({ length: 8 }, (_, n) => ({
    id: `j${n}`,
    prompt: `Do j${n}.`,
    backend: 'gemini',
    depends_on: n === 0 ? [] : n % 3 === 0 ? [`j${n - 1}`, `j${n - 2}`] : [`j${n - 1}`],
  }));
  let daemon = await serve();
  const body = { name: 'crash', jobs };
  const created = await daemon.api.send({ method: 'POST', path: '/api/v1/pipelines', body });
  const path = `/api/v1/pipelines/${created.json.id}`;
  const read = () => daemon.api.ok('GET', path) as Promise<Pipeline>;
  let restarted = 0;
  // A session may be lost with the daemon, which then says so: it is run again.
  const goOn = async () => {
    const { status } = await read();
    if (status !== 'stalled') return status;
    restarted++;
    return (await daemon.api.ok('POST', `${path}:start`)).status as Pipeline['status'];
  };
  const patience = { timeout: 120_000, interval: 20 };
  for (const count of [1, 4]) {
    const begun = async () => (await goOn(), new Set(marks()).size);
    await expect.poll(begun, patience).toBeGreaterThanOrEqual(count);
    await daemon.end('SIGKILL');
    daemon = await serve();
  }
  await expect.poll(goOn, patience).toBe('done');
  const { jobs: ended } = await read();
  expect(ended.map(({ output }) => output)).toEqual(jobs.map(({ id }) => `${id} is done`));
  const { sessions } = (await daemon.api.ok('GET', '/api/v1/sessions')) as { sessions: Session[] };
  expect(sessions.length).toBe(jobs.length + restarted);
  // In order, for each one waits for the one before.
  expect([...new Set(marks())]).toEqual(jobs.map(({ id }) => id));
  expect(marks().length).toBeLessThanOrEqual(jobs.length + restarted);
  await removeSessions(daemon.api);
  await daemon.end('SIGTERM');
}, 600_000);
