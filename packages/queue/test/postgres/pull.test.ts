import { systemClock } from '@millrace/kit/clock';
import { memoryLog, silentLog } from '@millrace/kit/log';
import { createMetrics } from '@millrace/kit/metrics';
import { systemRandom } from '@millrace/kit/random';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { newObserver } from '../../src/delivery/delivery.test-support.js';
import { createDelivery, type Delivery } from '../../src/delivery/index.js';
import { openPostgresStore } from '../../src/storage/postgres/open.js';
import type { TaskStore } from '../../src/storage/port/task-store.js';
import { someConfig, someTask } from '../task-store/fixture.js';
import { startPostgres, type PostgresServer } from './postgres-server.js';

let postgres: PostgresServer;
let url: string;
let databases = 0;
beforeAll(async () => void (postgres = await startPostgres()));
beforeEach(async () => void (url = await postgres.database(`pull_${++databases}`)));
afterAll(() => postgres.remove());

/** One server on the database, without its HTTP. */
async function startNode(nodeId: string): Promise<{ store: TaskStore; delivery: Delivery }> {
  const world = { clock: systemClock, random: systemRandom, log: memoryLog() };
  const store = await openPostgresStore(url, { ...world, log: silentLog });
  const metrics = createMetrics('queue');
  const delivery = createDelivery({
    ...world,
    store,
    observer: newObserver(store, world.clock),
    metrics,
    nodeId,
    outbound: { request: () => Promise.reject(new Error('no callbacks')), close: async () => {} },
    findSecret: () => undefined,
    isAllowed: () => true,
  });
  await delivery.start();
  onTestFinished(async () => {
    await delivery.stop({ timeoutMs: 0 });
    metrics.close();
    await store.close();
  });
  return { store, delivery };
}

async function makeQueue(store: TaskStore): Promise<void> {
  const { url: _none, ...callback } = someConfig().callback;
  const config = { ...someConfig(), callback: { ...callback, protocol: 'pull' as const } };
  await store.putQueue({ queue: 'mail', config, now: systemClock.now(), by: 'ada' });
}

async function submit(store: TaskStore, count = 1): Promise<string[]> {
  const now = systemClock.now();
  const tasks = Array.from({ length: count }, () =>
    someTask({ id: systemRandom.ulid(now), dueAt: now }),
  );
  await store.insertTasks(tasks, now);
  return tasks.map(({ id }) => id);
}

const request = (worker: string, waitMs = 30_000) => ({
  worker,
  principal: 'mailers',
  remoteIp: null,
  limit: 10,
  waitMs,
  leaseMs: 60_000,
});

test('claim: a submit on one server wakes a claim that waits on another', async () => {
  const [a, b] = [await startNode('a'), await startNode('b')];
  await makeQueue(a.store);
  const waiting = b.delivery.claim('mail', request('w1'));
  expect(await b.delivery.claim('mail', request('w2', 0))).toEqual([]);
  const [id] = await submit(a.store);
  expect((await waiting).map((task) => task.id)).toEqual([id]);
});

test('claim: servers hand out each task once, and settle those of the other', async () => {
  const [a, b] = [await startNode('a'), await startNode('b')];
  await makeQueue(a.store);
  const ids = await submit(a.store, 20);
  const claimed: string[] = [];
  while (claimed.length < ids.length) {
    const [ofA, ofB] = await Promise.all([
      a.delivery.claim('mail', request('w1', 1_000)),
      b.delivery.claim('mail', request('w2', 1_000)),
    ]);
    const reports = [...ofA, ...ofB].map(({ id, lease }) => ({
      id,
      token: lease.token,
      outcome: 'complete' as const,
    }));
    claimed.push(...reports.map(({ id }) => id));
    const done = await b.delivery.settleAll((await b.store.getQueue('mail'))!, reports);
    expect(done.map((task) => typeof task === 'object' && task.status)).toEqual(
      reports.map(() => 'SUCCEEDED'),
    );
  }
  expect(claimed.toSorted()).toEqual(ids.toSorted());
  await a.delivery.workers('mail');
  const workers = await b.delivery.workers('mail');
  const sum = (key: 'claimed' | 'completed' | 'inFlight') =>
    workers.reduce((total, worker) => total + worker[key], 0);
  expect([sum('claimed'), sum('completed'), sum('inFlight')]).toEqual([20, 20, 0]);
});
