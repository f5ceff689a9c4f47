import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { open as openDatabase } from '@millrace/engine';
import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { campaignSize } from '../../../../test/support/campaign.js';
import { storeProblems } from '../../src/storage/embedded/verify.js';
import { openEmbeddedStore } from '../../src/storage/embedded/open.js';
import { MemoryStore } from '../support/memory-store/index.js';
import { openPostgresStore } from '../../src/storage/postgres/open.js';
import { sendSignal } from '../../src/storage/port/flow-run.js';
import { readRuns } from '../../src/storage/port/flow-runs.js';
import type { TaskStore } from '../../src/storage/port/task-store.js';
import { transferTasks } from '../../src/storage/transfer-tasks.js';
import { newDirectory } from '../support/server.js';
import { flowOperations, ModelRun } from '../task-store/model-run.js';
import { noon, settlementOf, someConfig } from '../task-store/fixture.js';
import { tableProblems } from './consistency.js';
import { startPostgres, type PostgresServer } from './postgres-server.js';

let postgres: PostgresServer;
let databases = 0;
beforeAll(async () => void (postgres = await startPostgres()));
afterAll(() => postgres.remove());

const world = { clock: systemClock, random: systemRandom, log: silentLog };
const newUrl = () => postgres.database(`transfer_${++databases}`);

async function openForTransfer(url: string) {
  const store = await openPostgresStore(url, { ...world, forTransfer: true });
  onTestFinished(() => store.close());
  return store;
}

/** A data directory with a used store. */
async function livedIn(fill: (store: TaskStore) => Promise<void>): Promise<string> {
  const data = newDirectory();
  const store = await openEmbeddedStore(join(data, 'queue'), world);
  await fill(store);
  await store.close();
  return data;
}

async function submitMany(store: TaskStore, count: number): Promise<void> {
  await store.putQueue({ queue: 'mail', config: someConfig(), now: noon, by: 'ada' });
  const tasks = Array.from({ length: count }, (_, i) => ({
    id: systemRandom.ulid(noon),
    queue: 'mail',
    handlerRef: 'mail.send',
    payload: Buffer.alloc(i % 50 === 0 ? 3_000 : 20, i),
    payloadContentType: 'text/plain',
    headers: i % 3 ? {} : { 'x-a': 'b' },
    priority: i % 10,
    groupKey: i % 4 ? null : 'ä',
    dueAt: noon,
    expiresAt: null,
    submittedBy: 'shop',
    maxPending: 0,
  }));
  await store.insertTasks(tasks, noon);
}

test('transfer: a store is the same in PostgreSQL and back', async () => {
  await fc.assert(
    fc.asyncProperty(flowOperations, async (list) => {
      const data = await livedIn((store) => new ModelRun(new MemoryStore(), store).run(list));
      const url = await newUrl();
      const store = await openForTransfer(url);
      await transferTasks(store, { ...world, direction: 'in', dataDirectory: data });
      expect(await tableProblems(postgres, url)).toEqual([]);
      const back = newDirectory();
      await transferTasks(store, { ...world, direction: 'out', dataDirectory: back });
      await store.close();
      const database = await openDatabase(join(back, 'queue'));
      const problems = database.readRows(storeProblems);
      await database.close();
      expect(problems).toEqual([]);
    }),
    { numRuns: Number(process.env['MILLRACE_RUNS'] ?? campaignSize({ quick: 3, full: 8 })) },
  );
});

/** A dependent, and a flow with a step and a signal that waits for a child. */
async function fillFlows(store: TaskStore): Promise<Record<string, string>> {
  await store.putQueue({ queue: 'mail', config: someConfig(), now: noon, by: 'ada' });
  const ids = Object.fromEntries(
    ['parent', 'child', 'dependent'].map((name) => [name, systemRandom.ulid(noon)]),
  );
  const task = (name: string, flow?: object) => ({
    id: ids[name]!,
    queue: 'mail',
    handlerRef: name,
    payload: Buffer.from('1'),
    payloadContentType: 'text/plain',
    headers: {},
    priority: 4,
    groupKey: null,
    dueAt: noon,
    expiresAt: null,
    submittedBy: 'shop',
    maxPending: 0,
    ...(flow && { flow }),
  });
  await store.insertTasks([task('parent', { flowId: systemRandom.ulid(noon), key: 'p' })], noon);
  const [parent] = await claimAll(store);
  const dependsOn = [{ id: ids['parent']!, on: 'success' as const }];
  await store.insertTasks([task('child', { parentId: ids['parent'] })], noon);
  await store.insertTasks([task('dependent', { dependsOn })], noon);
  const signal = { id: 's1', name: 'go', payload: '7' };
  await store.runFlow(() => sendSignal(ids['parent']!, signal, noon), noon);
  const verdict = { kind: 'suspended', dueAt: noon, flow: {} } as const;
  const steps = [{ name: 'one', result: '1', consumes: [] }];
  const suspension = { tasks: [ids['child']!], mode: 'all' as const };
  const settlement = { ...settlementOf(parent!, verdict), suspension, steps, maxSteps: 9 };
  expect(await store.settle([settlement])).toMatchObject([{ kind: 'settled' }]);
  return ids;
}

const claimAll = (store: TaskStore) =>
  store.claimDue({
    queue: 'mail',
    limit: 100,
    now: noon + 60_000,
    nodeId: 'node',
    leaseExpiresAt: noon + 120_000,
    newToken: () => systemRandom.ulid(noon),
    maxInFlight: 100,
    dispatchPerSecond: 0,
    fifoGroups: false,
  });

/** Runs the child, which wakes the parent, which releases the dependent. */
async function finishFlows(store: TaskStore, ids: Record<string, string>): Promise<void> {
  const run = async (name: string, result: string) => {
    const [task, ...others] = await claimAll(store);
    expect([task!.id, others]).toEqual([ids[name], []]);
    const found = (await readRuns(store, [task!])).get(task!.id);
    await store.settle([{ ...settlementOf(task!, { kind: 'succeeded' }), result }]);
    return found;
  };
  await run('child', '"done"');
  expect(await run('parent', '"all"')).toMatchObject({
    steps: [{ name: 'one', result: '1' }],
    signals: [{ id: 's1', name: 'go', payload: '7' }],
    children: [{ id: ids['child'], status: 'SUCCEEDED', result: '"done"' }],
    wokenBy: { kind: 'task', id: ids['child'] },
  });
  expect(await run('dependent', '1')).toMatchObject({
    dependencies: [{ id: ids['parent'], status: 'SUCCEEDED', result: '"all"' }],
  });
}

test('transfer: flows go on in PostgreSQL, and after the way back', async () => {
  let ids: Record<string, string> = {};
  const data = await livedIn(async (store) => void (ids = await fillFlows(store)));
  const url = await newUrl();
  const moving = await openForTransfer(url);
  await transferTasks(moving, { ...world, direction: 'in', dataDirectory: data });
  const back = newDirectory();
  await transferTasks(moving, { ...world, direction: 'out', dataDirectory: back });
  await moving.close();
  const store = await openPostgresStore(url, world);
  onTestFinished(() => store.close());
  await finishFlows(store, ids);
  const embedded = await openEmbeddedStore(join(back, 'queue'), world);
  onTestFinished(() => embedded.close());
  await finishFlows(embedded, ids);
});

test('transfer: a transferred store continues where it was', async () => {
  const data = await livedIn((store) => submitMany(store, 30));
  const url = await newUrl();
  const moving = await openForTransfer(url);
  const tally = await transferTasks(moving, { ...world, direction: 'in', dataDirectory: data });
  expect(tally).toEqual({ queues: 1, tasks: 30, audit_records: 1, resumed: false });
  await moving.close();
  const store = await openPostgresStore(url, world);
  onTestFinished(() => store.close());
  expect(await store.counts('mail')).toMatchObject({ pending: 30, inFlight: 0, dead: 0 });
  const claimed = await claimAll(store);
  expect(claimed).toHaveLength(30);
  await store.settle(claimed.map((task) => settlementOf(task, { kind: 'succeeded' })));
  expect(await store.setPaused({ queue: 'mail', paused: true, now: noon, by: 'ada' })).toBe(true);
  expect((await store.auditPage({ limit: 9 })).map(({ seq }) => seq)).toEqual([2, 1]);
});

test('transfer: an interrupted target is refused as a store, and the transfer resumes', async () => {
  const data = await livedIn((store) => submitMany(store, 900));
  const url = await newUrl();
  const stop = new AbortController();
  const first = await openForTransfer(url);
  const seen: number[] = [];
  const broken = transferTasks(first, {
    ...world,
    direction: 'in',
    dataDirectory: data,
    signal: stop.signal,
    progress: (_step, done, total) => {
      expect(total).toBe(900);
      seen.push(done);
      if (done >= 400) stop.abort(new Error('enough'));
    },
  });
  await expect(broken).rejects.toThrow('enough');
  await first.close();
  expect(seen).toEqual([200, 400]);
  await expect(openPostgresStore(url, world)).rejects.toThrow(/ctl queue migrate.* again/);
  const second = await openForTransfer(url);
  const tally = await transferTasks(second, { ...world, direction: 'in', dataDirectory: data });
  expect(tally).toMatchObject({ tasks: 900, resumed: true });
  await second.close();
  await (await openPostgresStore(url, world)).close();
  expect(await tableProblems(postgres, url)).toEqual([]);
});

test('transfer: existing data is not overwritten', async () => {
  const data = await livedIn((store) => submitMany(store, 3));
  const url = await newUrl();
  const store = await openForTransfer(url);
  await submitMany(store, 1);
  await expect(
    transferTasks(store, { ...world, direction: 'in', dataDirectory: data }),
  ).rejects.toThrow(/target is not empty/);
  await expect(
    transferTasks(store, { ...world, direction: 'out', dataDirectory: data }),
  ).rejects.toThrow(/exists already/);
  const none = newDirectory();
  await expect(
    transferTasks(store, { ...world, direction: 'in', dataDirectory: none }),
  ).rejects.toThrow(/has no queue store/);
  expect(existsSync(join(none, 'queue'))).toBe(false);
});

test('transfer: a source that changed meanwhile is detected', async () => {
  const url = await newUrl();
  const store = await openForTransfer(url);
  await submitMany(store, 300);
  const out = newDirectory();
  const moved = transferTasks(store, {
    ...world,
    direction: 'out',
    dataDirectory: out,
    progress: async () => void (await postgres.sql(url, `UPDATE millrace.live SET attempt = 7`)),
  });
  await expect(moved).rejects.toThrow(/the source changed during the transfer/);
  expect(existsSync(join(out, 'queue'))).toBe(false);
});

test('transfer: a target that changed after a finished transfer is refused', async () => {
  const data = await livedIn((store) => submitMany(store, 3));
  const url = await newUrl();
  const store = await openForTransfer(url);
  await transferTasks(store, { ...world, direction: 'in', dataDirectory: data });
  expect(
    await transferTasks(store, { ...world, direction: 'in', dataDirectory: data }),
  ).toMatchObject({
    tasks: 3,
  });
  await store.setPaused({ queue: 'mail', paused: true, now: noon, by: 'ada' });
  const again = transferTasks(store, { ...world, direction: 'in', dataDirectory: data });
  await expect(again).rejects.toThrow(/target is not empty: .*changed since/);
});

test('transfer: refused while a server or another transfer is connected', async () => {
  const url = await newUrl();
  // Each looks for five seconds whether those sessions end, which here pass at once.
  let waitedMs = 0;
  const sleep = async (durationMs: number) => void (waitedMs += durationMs);
  const hurried = { ...world, clock: { ...systemClock, sleep }, forTransfer: true };
  const server = await openPostgresStore(url, world);
  await expect(openPostgresStore(url, hurried)).rejects.toThrow(/servers are connected/);
  expect(waitedMs).toBeGreaterThan(4_000);
  await server.close();
  await openForTransfer(url);
  await expect(openPostgresStore(url, hurried)).rejects.toThrow(/another .*migrate.* is running/);
  expect(waitedMs).toBeGreaterThan(9_000);
});

test('transfer: schedules and jobs move with their queue, there and back', async () => {
  const tables = ['schedule', 'job'] as const;
  const data = await livedIn(async (store) => {
    await store.putQueue({ queue: 'mail', config: someConfig(), now: noon, by: 'ada' });
    for (const table of tables) {
      const key = { table, queue: 'mail', key: 'a' } as const;
      await store.writeRows({ puts: [{ ...key, body: { b: 1 }, value: {} }], now: noon });
      await store.writeRows({ puts: [{ ...key, value: { s: 2 } }], now: noon + 1 });
    }
  });
  const expected = (table: string) => [
    {
      table,
      queue: 'mail',
      key: 'a',
      body: { b: 1 },
      value: { s: 2 },
      revision: 2,
      createdAt: noon,
    },
  ];
  const moving = await openForTransfer(await newUrl());
  await transferTasks(moving, { ...world, direction: 'in', dataDirectory: data });
  for (const table of tables) {
    expect(await moving.listRows({ table, hasBodies: true })).toEqual(expected(table));
  }
  const back = newDirectory();
  await transferTasks(moving, { ...world, direction: 'out', dataDirectory: back });
  const store = await openEmbeddedStore(join(back, 'queue'), world);
  onTestFinished(() => store.close());
  for (const table of tables) {
    expect(await store.listRows({ table, hasBodies: true })).toEqual(expected(table));
  }
});
