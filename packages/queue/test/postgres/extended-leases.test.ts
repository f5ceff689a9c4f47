import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { newObserver } from '../../src/delivery/delivery.test-support.js';
import { LeaseExpiry } from '../../src/delivery/maintenance.js';
import { openPostgresStore } from '../../src/storage/postgres/open.js';
import type { TaskStore } from '../../src/storage/port/task-store.js';
import { someConfig, someTask } from '../task-store/fixture.js';
import { startPostgres, type PostgresServer } from './postgres-server.js';

let postgres: PostgresServer;
let url: string;
let databases = 0;
beforeAll(async () => void (postgres = await startPostgres()));
beforeEach(async () => void (url = await postgres.database(`extended_${++databases}`)));
afterAll(() => postgres.remove());

async function open(): Promise<TaskStore> {
  const world = { clock: systemClock, random: systemRandom, log: silentLog };
  const store = await openPostgresStore(url, world);
  onTestFinished(() => store.close());
  return store;
}

/** A task that is in flight, claimed by this store. */
async function claimOne(store: TaskStore, leaseMs: number) {
  const now = systemClock.now();
  await store.putQueue({ queue: 'mail', config: someConfig(), now, by: 'ada' });
  await store.insertTasks([someTask({ id: systemRandom.ulid(now), dueAt: now })], now);
  const [task] = await store.claimDue({
    queue: 'mail',
    limit: 1,
    now,
    nodeId: 'node',
    leaseExpiresAt: now + leaseMs,
    newToken: () => 'token',
    maxInFlight: 10,
    dispatchPerSecond: 0,
    fifoGroups: false,
  });
  return task!;
}

test('expiry: a lease that another server extends meanwhile is not ended', async () => {
  const [here, there] = [await open(), await open()];
  const task = await claimOne(here, 0);
  const now = systemClock.now();
  const change = { id: task.id, token: 'token', isAsync: false, now };
  let found = 0;
  const slow = new Proxy(here, {
    get(store, name) {
      if (name !== 'endedLeases') {
        const value = Reflect.get(store, name) as unknown;
        return typeof value === 'function' ? value.bind(store) : value;
      }
      return async (request: { now: number; limit: number }) => {
        const ended = await here.endedLeases(request);
        found += ended.length;
        await there.extendLease({ ...change, expiresAt: now + 600_000 });
        return ended;
      };
    },
  });
  const expired: string[] = [];
  const expiry = new LeaseExpiry({
    store: slow,
    observer: newObserver(slow, systemClock),
    clock: systemClock,
    random: systemRandom,
    onLeaseExpired: (_queue, token) => expired.push(token),
    emit: () => undefined,
  });
  await expiry.run();
  expect([found, expired]).toEqual([1, []]);
  expect(await here.getTask(task.id)).toMatchObject({
    status: 'IN_FLIGHT',
    attempt: 1,
    lease: { token: 'token', expiresAt: now + 600_000 },
  });
});

test('extend: of two servers at once the longer extension counts', async () => {
  const stores = [await open(), await open()];
  const task = await claimOne(stores[0]!, 1_000);
  const now = systemClock.now();
  for (const [i, ms] of [600_000, 5_000, 300_000].entries()) {
    const change = { id: task.id, token: 'token', isAsync: false, now };
    await stores[i % 2]!.extendLease({ ...change, expiresAt: now + ms });
  }
  expect(await stores[1]!.getTask(task.id)).toMatchObject({ lease: { expiresAt: now + 600_000 } });
});
