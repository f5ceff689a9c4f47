import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { systemClock } from '@millrace/kit/clock';
import { loadConfig } from '@millrace/kit/config';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { databaseConfig, serveDatabase, type RunningDatabase } from '@millrace/db/serve';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Lifecycle } from '../../base/lifecycle.js';
import { registry } from '../../registry.js';
import { run } from '../../run.js';

let folder = '';
let server: RunningDatabase;
let url = '';

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-shell-'));
  const { values } = loadConfig(databaseConfig, {
    environment: {},
    flags: { data: join(folder, 'data'), grpc: '127.0.0.1:0', http: '127.0.0.1:0' },
  });
  const world = { clock: systemClock, random: systemRandom, log: silentLog };
  server = await serveDatabase(values, world);
  url = server.listeners.find(({ listener }) => listener === 'socket')!.url;
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  const people = server.database.collection('people');
  for await (const { id } of people.stream()) await people.delete(id);
  await people.insertWithKey('ada', { name: 'Ada', age: 36 });
});

const lifecycle: Lifecycle = {
  interrupted: new AbortController().signal,
  serve: (work) => work(Promise.resolve()),
  onInterrupt: () => () => undefined,
  handOver: (work) => work(),
};

/** A shell with a keyboard and a screen of our own. */
function sit() {
  const keyboard = Object.assign(new PassThrough(), { isTTY: true });
  const screen = Object.assign(new PassThrough(), { isTTY: true, columns: 80 });
  let shown = '';
  screen.setEncoding('utf8').on('data', (text: string) => (shown += text));
  const outside = {
    stdin: keyboard,
    stdout: screen,
    stderr: screen,
    env: { NO_COLOR: '1', XDG_DATA_HOME: folder },
  };
  const ended = run(['db', 'shell', '--url', url], outside, lifecycle, registry);
  const says = async (text: string | RegExp) => {
    await expect.poll(() => shown).toMatch(text);
    shown = '';
  };
  return { type: (text: string) => keyboard.write(text), says, ended, leave: () => keyboard.end() };
}

test('a line is carried out, a mistake is reported, Ctrl-D leaves', async () => {
  const { type, says, ended, leave } = sit();
  await says(/Connected to unix:.*db> /s);
  type('find people age>30\n');
  await says(/KEY +REV +name +age\s+ada +1 +Ada +36\s+1 record\s+.*db> /s);
  type('fnd people\n');
  await says(/unknown command 'fnd'. Did you mean find\? Type help\s.*db> /s);
  type('get people nobody\n');
  await says(/has no record with the key "nobody".*db> /s);
  type('put people bob {"name": "Bob",\n');
  await says(/\.\.\. /);
  type(' "age": 20}\n');
  await says(/key +bob/);
  type('get people bob --json\n');
  await says(/"age": 20/);
  type('help\n');
  await says(/Commands:.*aggregate.*watch/s);
  leave();
  expect(await ended).toBe(0);
});

test('a Tab completes commands, collections, fields and flags', async () => {
  const { type, says, ended, leave } = sit();
  await says('db> ');
  type('agg\t');
  await says('aggregate ');
  type('peo\t');
  await says('people ');
  type('na\t');
  await says('name');
  type('=Ada --grou\t');
  await says('--group-by ');
  type('name\n');
  await says(/1 group\b/);
  leave();
  await ended;
});

test('Ctrl-C ends a watch and drops a half-typed line, not the shell', async () => {
  const { type, says, ended, leave } = sit();
  await says('db> ');
  type('watch people\n');
  await expect.poll(() => server.database.watches.size).toBe(1);
  await server.database.collection('people').upsert('ada', { name: 'Ada', age: 37 });
  await says(/update +people\/ada +rev 2/);
  type('\u0003');
  await says('db> ');
  await expect.poll(() => server.database.watches.size).toBe(0);
  type('put people x {"a":\n');
  await says(/\.\.\. /);
  type('\u0003');
  await says('db> ');
  type('find people --count\n');
  await says(/^1\s/m);
  leave();
  await ended;
});

test('the history is kept for its writer alone and comes back', async () => {
  const first = sit();
  await first.says('db> ');
  first.type('find people --count\n');
  await first.says(/^1\s/m);
  first.leave();
  await first.ended;
  const file = join(folder, 'millrace', 'db-shell-history');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readFileSync(file, 'utf8')).toMatch(/find people --count\n$/);
  const second = sit();
  await second.says('db> ');
  second.type('\u001B[A');
  await second.says('find people --count');
  second.type('\n');
  await second.says(/^1\s/m);
  second.leave();
  await second.ended;
});
