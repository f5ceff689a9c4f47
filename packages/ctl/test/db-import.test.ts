import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { connect, type RemoteDatabase } from '@millrace/db/client';
import { DbServer } from './db-server.js';
import { startCtl, type Started } from './run-ctl.js';

let server: DbServer;
let running: Started;
let database: RemoteDatabase | undefined;
beforeEach(async () => {
  server = new DbServer();
  running = await server.start();
});
afterEach(async () => {
  await database?.close();
  database = undefined;
  await server.remove();
});

const line = (n: number) => `{"key":"k${n}","data":{"n":${n}}}\n`;
const lines = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => line(from + i)).join('');
const patient = { timeout: 60_000, interval: 100 };

/** An import whose input stays open. */
async function startImport(...flags: string[]) {
  const args = ['db', 'import', 'people', '-', '--batch', '2', ...flags];
  return startCtl(args, {}, { cwd: server.folder });
}

async function untilCount(count: number): Promise<void> {
  database ??= await connect(`unix:${server.data}/db.sock`);
  const people = database.collection('people');
  await vi.waitFor(async () => expect(await people.count()).toBeGreaterThanOrEqual(count), patient);
}

/** The line it stopped at; every line before it must be there. */
async function stoppedAt(err: string): Promise<number> {
  const [, at, from] = /Stopped at line (\d+)\. Resume with --start-line (\d+)/.exec(err) ?? [];
  expect(at, err).toBeDefined();
  expect(from).toBe(at);
  const people = database!.collection('people');
  for (let n = 1; n < Number(at); n++) {
    expect((await people.findByKey(`k${n}`))?.data, `line ${n}`).toEqual({ n });
  }
  return Number(at);
}

async function resume(at: number, text: string): Promise<void> {
  const args = ['import', 'people', '-', '--start-line', String(at)];
  expect(await server.ctl(args, { input: text })).toMatchObject({ code: 0 });
}

test('import: Ctrl-C names the line to resume at, and every earlier line is written', async () => {
  const started = await startImport();
  started.child.stdin.write(lines(1, 5));
  await untilCount(4);
  started.child.kill('SIGINT');
  const { code, err } = await started.ended;
  expect(code).toBe(130);
  const at = await stoppedAt(err);
  expect(at).toBeLessThanOrEqual(5);
  // Nothing behind it is written: a line without a key would be inserted again.
  expect(await database!.collection('people').count()).toBe(at - 1);
  await resume(at, lines(1, 5));
  expect(await database!.collection('people').count()).toBe(5);
});

test('import: a lost server names the line to resume at', async () => {
  const started = await startImport('--timeout', '2s');
  started.child.stdin.write(lines(1, 4));
  await untilCount(4);
  await database!.close();
  database = undefined;
  running.child.kill('SIGKILL');
  await running.ended;
  started.child.stdin.end(lines(5, 9));
  const { code, err } = await started.ended;
  expect(code, err).toBe(1);
  await server.start();
  await untilCount(4);
  const at = await stoppedAt(err);
  expect(at).toBeGreaterThan(1);
  await resume(at, lines(1, 9));
  expect(await database!.collection('people').count()).toBe(9);
});

test('import: a directory is not a file', async () => {
  const { code, err } = await server.ctl(['import', 'people', server.folder]);
  expect([code, err]).toEqual([1, `ctl: ${server.folder}: is a directory, not a file.\n`]);
});
