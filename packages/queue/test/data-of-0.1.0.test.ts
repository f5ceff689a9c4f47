import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { open, type Database } from '@millrace/engine';
import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { seededRandom } from '@millrace/kit/random';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { WholeTask } from '../src/core/task.js';
import { storeProblems } from '../src/storage/embedded/verify.js';
import { EmbeddedStore } from '../src/storage/embedded/embedded-store.js';
import { openEmbeddedStore } from '../src/storage/embedded/open.js';
import { kinds, nameKey } from '../src/storage/embedded/keys.js';
import type { TaskFilter } from '../src/storage/port/task-list.js';
import { noon, settlementOf, someTask } from './task-store/fixture.js';

/**
 * The directory was written by version 0.1.0, with tasks in every state: `mail` (plain), `letters`
 * (FIFO), `slow` (2 a second), `paused`, and tombstones of a deleted queue and of a purge.
 */
const fixture = join(import.meta.dirname, 'fixtures/0.1.0');
const ids = JSON.parse(readFileSync(join(fixture, 'ids.json'), 'utf8')) as Record<string, string>;
const options = { clock: systemClock, random: seededRandom(5), log: silentLog };
let directory: string;
let database: Database;
let store: EmbeddedStore;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'millrace-queue-'));
  copyFileSync(join(fixture, 'CURRENT'), join(directory, 'CURRENT'));
  const bytes = gunzipSync(readFileSync(join(fixture, 'store-000001.mdb.gz')));
  writeFileSync(join(directory, 'store-000001.mdb'), bytes);
  database = await open(directory, options);
  store = new EmbeddedStore(database, options.random);
});

afterEach(async () => {
  expect(database.readRows(storeProblems)).toEqual([]);
  await store.close();
  rmSync(directory, { recursive: true, force: true });
});

let tokens = 0;
const hourLater = noon + 3_600_000;

async function claim(queue: string, fifoGroups = false): Promise<WholeTask[]> {
  return store.claimDue({
    queue,
    limit: 100,
    now: hourLater,
    nodeId: 'node-2',
    leaseExpiresAt: hourLater + 45_000,
    newToken: () => `new-${++tokens}`,
    maxInFlight: 64,
    dispatchPerSecond: 0,
    fifoGroups,
  });
}

async function succeed(tasks: readonly WholeTask[]): Promise<void> {
  const results = await store.settle(
    tasks.map((task) => settlementOf(task, { kind: 'succeeded' }, { now: hourLater })),
  );
  expect(results.map(({ kind }) => kind)).toEqual(tasks.map(() => 'settled'));
}

const nameOf = (id: string) => Object.keys(ids).find((name) => ids[name] === id) ?? id;

test('data of 0.1.0: every task is read in its state', async () => {
  const states: Record<string, string | undefined> = {};
  for (const [name, id] of Object.entries(ids)) {
    const found = await store.getTask(id);
    states[name] = found && ('purgedAt' in found ? 'tombstone' : found.status);
  }
  const named = (state: string) =>
    Object.keys(states)
      .filter((name) => states[name] === state)
      .toSorted();
  expect(named('SUCCEEDED')).toEqual(['succeeded']);
  expect(named('DEAD')).toEqual(['dead', 'expired']);
  expect(named('tombstone')).toEqual(['goneTask', 'purged']);
  expect(named('IN_FLIGHT')).toEqual(['async', 'first', 'free', 'inFlight', 'slow1']);
  expect(named('PENDING')).toHaveLength(13);
  const large = (await store.getTask(ids['large']!)) as WholeTask;
  expect(Buffer.from(large.payload)).toEqual(Buffer.alloc(5_000, 7));
  const dead = (await store.getTask(ids['dead']!)) as WholeTask;
  expect(dead).toMatchObject({ deadReason: 'PERMANENT', attempts: [{ outcome: 'FAILED' }] });
  const actions = (await store.auditPage({ limit: 100 })).map(({ action }) => action);
  expect(actions.slice(0, 4)).toEqual(['pause', 'redrive', 'delete', 'purge']);
});

test('data of 0.1.0: all tasks can be worked off, leases and queues included', async () => {
  // Leases that were taken by the old version are still held, and can be settled.
  const held = await store.endedLeases({ now: hourLater, limit: 100 });
  expect(held.map(({ id }) => nameOf(id)).toSorted()).toEqual([
    'async',
    'first',
    'free',
    'inFlight',
    'slow1',
  ]);
  await succeed(held);
  const first = await claim('mail');
  expect(nameOf(first[0]!.id)).toBe('urgent');
  expect(first.map(({ id }) => nameOf(id)).toSorted()).toEqual([
    'delayed',
    'expiring',
    'grouped',
    'large',
    'pending',
    'redriven',
    'retried',
    'urgent',
  ]);
  await succeed(first);
  const fifo: string[] = [];
  for (let tasks = await claim('letters', true); tasks.length > 0;) {
    fifo.push(...tasks.map(({ id }) => nameOf(id)));
    await succeed(tasks);
    tasks = await claim('letters', true);
  }
  expect(fifo.filter((name) => name !== 'other')).toEqual(['second', 'third']);
  expect(await claim('paused')).toEqual([]);
  await store.setPaused({ queue: 'paused', paused: false, now: hourLater, by: 'ada' });
  for (const queue of ['paused', 'slow']) await succeed(await claim(queue));
  for (const { name } of await store.listQueues()) {
    const dead = name === 'mail' ? 2 : 0;
    expect(await store.counts(name)).toMatchObject({ pending: 0, inFlight: 0, dead });
  }
});

test('data of 0.1.0: tasks are listed and counted after the upgrade', async () => {
  const list = async (filter: TaskFilter) => {
    const { tasks } = await store.listTasks({ queue: 'mail', filter, order: 'oldest', limit: 500 });
    return tasks.map(({ id }) => nameOf(id)).toSorted();
  };
  const fresh = { ...someTask({ id: seededRandom(9).ulid(noon), dueAt: noon }), handlerRef: 'new' };
  await store.insertTasks([fresh], noon);
  expect(await list({ statuses: ['DEAD'] })).toEqual(['dead', 'expired']);
  expect(await list({ statuses: ['SUCCEEDED'] })).toEqual(['succeeded']);
  expect(await list({ statuses: ['IN_FLIGHT'] })).toEqual(['async', 'inFlight']);
  expect(await list({ handlerRef: 'new' })).toEqual([fresh.id]);
  const all = await list({});
  expect(all).toHaveLength(new Set(all).size);
  expect(await store.countTasks({ queue: 'mail', filter: {} })).toEqual({
    count: all.length,
    isEstimate: false,
  });
  await succeed(await claim('mail'));
  expect(await list({})).toEqual(all);
});

test('data of 0.1.0: the format is upgraded once, and an older Millrace refuses it', async () => {
  await store.close();
  store = await openEmbeddedStore(directory, options);
  await store.listTasks({ queue: 'mail', filter: {}, order: 'newest', limit: 1 });
  await store.close();
  database = await open(directory, options);
  store = new EmbeddedStore(database, options.random);
  const format = database.readRows((rows) => rows.get(nameKey(kinds.meta, 'format')));
  expect(format?.toString()).toBe('2');
});
