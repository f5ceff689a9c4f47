import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { inCampaign } from '../../../../test/support/campaign.js';
import { ctlHere } from '../../../ctl/test/run-ctl.js';
import { RestClient } from './support/rest.js';

const again = inCampaign('process');

const ctl = fileURLToPath(new URL('../../../../bin/ctl', import.meta.url));
const anyPorts = ['--grpc=127.0.0.1:0', '--http=127.0.0.1:0', '--auth=none'];
const children: ChildProcess[] = [];
const directories: string[] = [];

afterEach(() => {
  for (const child of children.splice(0)) if (child.exitCode === null) child.kill('SIGKILL');
  for (const directory of directories.splice(0))
    rmSync(directory, { recursive: true, force: true });
});

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'mr-process-'));
  directories.push(directory);
  return directory;
}

interface Run {
  child: ChildProcess;
  /** Lines of stdout so far. */
  lines: string[];
  stderr: () => string;
  ended: Promise<number | string>;
}

function run(args: string[], environment: Record<string, string> = {}): Run {
  const child = spawn(process.execPath, [ctl, 'db', 'serve', ...args], {
    env: { ...process.env, NODE_OPTIONS: '', ...environment },
  });
  children.push(child);
  let [out, err] = ['', ''];
  const lines: string[] = [];
  child.stdout.on('data', (bytes: Buffer) => {
    out += bytes.toString();
    lines.splice(0, lines.length, ...out.split('\n').slice(0, -1));
  });
  child.stderr.on('data', (bytes: Buffer) => (err += bytes.toString()));
  const ended = new Promise<number | string>((resolve) => {
    child.on('close', (code, signal) => resolve(code ?? signal ?? 'gone'));
  });
  return { child, lines, stderr: () => err, ended };
}

async function listening({ lines, stderr }: Run): Promise<Record<string, string>> {
  await expect.poll(() => lines.length, { timeout: 90_000, message: stderr() }).toBe(3);
  const events = lines.map((line) => JSON.parse(line) as Record<string, string>);
  for (const event of events) {
    expect(event).toMatchObject({ event: 'listening', component: 'db' });
  }
  return Object.fromEntries(events.map(({ listener, url }) => [listener!, url!]));
}

test('process: prints its addresses, serves and exits 0 on SIGTERM', async () => {
  const data = newDirectory();
  const server = run([...anyPorts, `--data=${data}`]);
  const urls = await listening(server);
  expect(urls).toEqual({
    grpc: expect.stringMatching(/^grpc:\/\/127\.0\.0\.1:\d+$/) as string,
    http: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/) as string,
    socket: `unix://${data}/db.sock`,
  });
  const rest = new RestClient(urls['http']!);
  await rest.ok('POST', '/v1/people/keys', { key: 'ada', data: { n: 1 } });
  server.child.kill('SIGTERM');
  expect(await server.ended).toBe(0);
  expect(existsSync(join(data, 'db.sock'))).toBe(false);
  expect(server.lines).toHaveLength(3);

  const again = run([...anyPorts, `--data=${data}`]);
  const { http } = await listening(again);
  expect(await new RestClient(http!).ok('GET', '/v1/people/keys/ada')).toMatchObject({
    record: { data: { n: 1 } },
  });
  again.child.kill('SIGINT');
  expect(await again.ended).toBe(0);
});

test('process: replaces the socket of a killed server', async () => {
  const data = newDirectory();
  const first = run([...anyPorts, `--data=${data}`]);
  await listening(first);
  first.child.kill('SIGKILL');
  await first.ended;
  expect(existsSync(join(data, 'db.sock'))).toBe(true);
  const second = run([...anyPorts, `--data=${data}`]);
  await listening(second);
  second.child.kill('SIGTERM');
  expect(await second.ended).toBe(0);
});

test('process: a second process on the same directory exits 2 with one line', async () => {
  const data = newDirectory();
  const first = run([...anyPorts, `--data=${data}`]);
  const { http } = await listening(first);
  const second = run([...anyPorts, `--data=${data}`]);
  expect(await second.ended).toBe(2);
  expect(second.lines).toEqual([]);
  expect(second.stderr().trim().split('\n')).toEqual([
    expect.stringContaining(`is in use by process ${first.child.pid}`),
  ]);
  expect((await new RestClient(http!).send('GET', '/readyz')).status).toBe(200);
  first.child.kill('SIGTERM');
  expect(await first.ended).toBe(0);
});

test.each([
  [['--grpc=0.0.0.0:0'], /grpc listens at 0\.0\.0\.0.*auth is none/],
  [['--http=[::]:0'], /http listens at ::.*auth is none/],
  [['--http=nonsense'], /--http must be an address/],
  [['--durability=maybe'], /--durability must be .*full.*relaxed/],
  [['--auth=keys', '--keys-file=none.yaml'], /none\.yaml: no such file/],
  [['--config=none.yaml'], /none\.yaml: no such file/],
  [['--follow=leader'], /--follow must be an address such as grpc/],
])('process: %s is refused in one line with exit code 2', async (flags, text) => {
  const args = ['db', 'serve', ...anyPorts, `--data=${newDirectory()}`, ...flags];
  const { code, err } = await ctlHere(args);
  expect(code).toBe(2);
  expect(err.trim()).toMatch(text);
  expect(err.trim().split('\n')).toHaveLength(1);
});

again('process: flags override variables, which override the file', async () => {
  const home = newDirectory();
  const file = join(home, 'db.yaml');
  writeFileSync(
    file,
    `grpc: 127.0.0.1:0
http: 127.0.0.1:0
auth: none
data: ./here
durability: relaxed
max_watches: 1
log_retention: {age: 1h, bytes: 1MiB}
collections:
  people: {indexes: [{fields: [age]}, {fields: [email], unique: true}], default_ttl_ms: 0}
`,
  );
  const server = run([`--config=${file}`, '--max-inflight=7'], { MILLRACE_DB_MAX_WATCHES: '0' });
  const { http } = await listening(server);
  const rest = new RestClient(http!);
  expect(await rest.ok('GET', '/v1/admin/replication?include_collections=1')).toMatchObject({
    durability: 'relaxed',
    collections: [{ name: 'people', indexes: [{ name: 'age' }, { name: 'email', unique: true }] }],
  });
  expect((await rest.refusal('GET', '/v1/people/records:watch')).metadata).toEqual({ limit: '0' });
  expect((await rest.send('GET', '/metrics')).text).toContain('millrace_db_durability_relaxed 1');
  expect(existsSync(join(home, 'here', 'CURRENT'))).toBe(true);
  server.child.kill('SIGTERM');
  expect(await server.ended).toBe(0);
});

test.each([
  ['{1st: {}}', /collections\.1st: "1st" cannot name a collection/],
  ['{people: {indexes: [{fields: [a, a]}]}}', /collections\.people: .*names a field twice/],
])('process: invalid collections are a usage error: %s', async (collections, problem) => {
  const data = join(newDirectory(), 'data');
  const server = run([...anyPorts, `--data=${data}`, `--collections=${collections}`]);
  expect(await server.ended).toBe(2);
  expect(server.stderr()).toMatch(problem);
  expect(existsSync(data)).toBe(false);
});

test('process: an invalid setting is reported with its line', async () => {
  const file = join(newDirectory(), 'db.yaml');
  writeFileSync(file, 'grpc: 127.0.0.1:0\nmax_wachtes: 3\nshed_target_ms: soon\n');
  const server = run([`--config=${file}`]);
  expect(await server.ended).toBe(2);
  expect(server.stderr()).toMatch(/db\.yaml:2: .*max_wachtes.*max_watches/);
  expect(server.stderr()).toMatch(/db\.yaml:3: shed_target_ms/);
});
