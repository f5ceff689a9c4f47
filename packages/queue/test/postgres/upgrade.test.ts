import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { WholeTask } from '../../src/core/task.js';
import type { TaskStore, Verdict } from '../../src/storage/port/task-store.js';
import { settlementOf, someTask } from '../task-store/fixture.js';
import { tableProblems } from './consistency.js';
import { openOn } from './fresh-store.js';
import { startPostgres, type PostgresServer } from './postgres-server.js';

/** Tables and tasks as Millrace 0.1.0 wrote them, at this time. */
const dump = readFileSync(new URL('../fixtures/0.1.0/postgres.sql', import.meta.url), 'utf8');
const noon = Date.UTC(2026, 0, 5, 12);
const id = (serial: number) => `01KE6S0000000000000000${String(serial).padStart(4, '0')}`;

let postgres: PostgresServer;
let url: string;
let store: TaskStore;
let databases = 0;
beforeAll(async () => void (postgres = await startPostgres()));
afterAll(() => postgres.remove());
beforeEach(async () => {
  url = await postgres.database(`upgraded_${++databases}`);
  await postgres.sql(url, dump);
  store = await openOn(url);
});

let tokens = 0;
const claim = (queue: string, now: number, fifoGroups = false) =>
  store.claimDue({
    queue,
    limit: 50,
    now,
    nodeId: 'node-2',
    leaseExpiresAt: now + 45_000,
    newToken: () => `new-token-${++tokens}`,
    maxInFlight: 1_000,
    dispatchPerSecond: 0,
    fifoGroups,
  });
const settle = async (tasks: readonly WholeTask[], verdict: Verdict, now: number) => {
  const results = await store.settle(tasks.map((task) => settlementOf(task, verdict, { now })));
  expect(results.map(({ kind }) => kind)).toEqual(tasks.map(() => 'settled'));
};

test('upgrade from 0.1.0: keeps every task in its state', async () => {
  expect(await tableProblems(postgres, url)).toEqual([]);
  expect(await store.counts('mail')).toMatchObject({ pending: 7, inFlight: 3, dead: 2 });
  expect(await store.counts('orders')).toMatchObject({ pending: 2, inFlight: 2, dead: 0 });
  const states = new Map([
    [1, 'SUCCEEDED'],
    [3, 'SUCCEEDED'],
    [4, 'DEAD'],
    [7, 'PENDING'],
    [8, 'IN_FLIGHT'],
    [10, 'IN_FLIGHT'],
    [11, 'PENDING'],
    [15, 'PENDING'],
  ]);
  for (const [serial, status] of states) {
    expect(await store.getTask(id(serial))).toMatchObject({
      status,
      payload: Buffer.from(`hello ${serial}`),
      headers: { 'x-n': String(serial) },
    });
  }
  expect(await store.getTask(id(7))).toMatchObject({
    attempt: 1,
    dueAt: noon + 60_000,
    lastError: { errorType: 'HTTP_5XX' },
    attempts: [{ httpStatus: 502 }],
  });
  expect(await store.getTask(id(6))).toMatchObject({ status: 'DEAD', purgedAt: noon + 1_000 });
  expect(await store.getTask(id(21))).toMatchObject({ queue: 'gone', status: 'SUCCEEDED' });
  expect(await store.auditPage({ limit: 9 })).toHaveLength(5);
});

test('upgrade from 0.1.0: is refused with upgrade: false, and changes nothing', async () => {
  const old = await postgres.database(`refused_${++databases}`);
  await postgres.sql(old, dump);
  const refused = openOn(old, { upgrade: false });
  await expect(refused).rejects.toThrow(/have version \d+, and .* Upgrades are turned off/);
  const stored = await postgres.sql(old, 'SELECT version FROM millrace.schema_version');
  expect(stored).toEqual([{ version: 5 }]);
});

test('upgrade from 0.1.0: works off every task', async () => {
  const due = await claim('mail', noon);
  expect(due.map((task) => task.id)).toEqual([12, 13, 14, 11, 16].map(id));
  await settle(due, { kind: 'succeeded' }, noon + 200);
  const ended = await store.endedLeases({ now: noon + 45_000, limit: 99 });
  expect(ended.map((task) => task.id)).toEqual([8, 9, 10, 17, 20].map(id));
  await settle(ended, { kind: 'retry', dueAt: noon + 50_000 }, noon + 45_000);
  const later = noon + 3_600_000;
  const rest = await claim('mail', later);
  expect(rest.map((task) => task.id).toSorted()).toEqual([7, 8, 9, 10, 15].map(id));
  await settle(rest, { kind: 'succeeded' }, later);
  const worked: string[] = [];
  for (let heads = await claim('orders', later, true); heads.length > 0;) {
    worked.push(...heads.map((task) => task.id));
    await settle(heads, { kind: 'succeeded' }, later);
    heads = await claim('orders', later, true);
  }
  expect(worked.indexOf(id(17))).toBeLessThan(worked.indexOf(id(18)));
  expect(worked.toSorted()).toEqual([17, 18, 19, 20].map(id));
  expect(await store.counts('mail')).toMatchObject({ pending: 0, inFlight: 0, dead: 2 });
  const change = { queue: 'mail', diedBy: later, now: later, by: 'ada', selector: {} };
  const act = async (action: 'redrive' | 'purge', of: string) =>
    (await store.actOnDead({ ...change, action, ids: [of], dueAt: () => later })).ids;
  expect(await act('redrive', id(4))).toEqual([id(4)]);
  expect(await act('purge', id(5))).toEqual([id(5)]);
  await settle(await claim('mail', later), { kind: 'succeeded' }, later);
  expect(await tableProblems(postgres, url)).toEqual([]);
});

test('upgrade from 0.1.0: deletes old successes and takes new tasks', async () => {
  const old = { queue: 'mail', status: 'SUCCEEDED', now: noon + 2_000, limit: 99 } as const;
  expect(await store.deleteFinished({ ...old, endedBefore: noon + 100 })).toBe(0);
  expect(await store.deleteFinished({ ...old, endedBefore: noon + 101 })).toBe(3);
  const again = someTask({ id: id(11), dueAt: noon });
  const fresh = someTask({ id: id(99), dueAt: noon });
  const results = await store.insertTasks([again, fresh], noon + 2_000);
  expect(results.map(({ kind }) => kind)).toEqual(['existing', 'stored']);
  expect(await tableProblems(postgres, url)).toEqual([]);
});
