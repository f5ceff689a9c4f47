import { systemClock } from '@millrace/kit/clock';
import { systemRandom } from '@millrace/kit/random';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { attemptRecord, isClaimed } from '../../src/core/outcome.js';
import type { WholeTask } from '../../src/core/task.js';
import { textArray } from '../../src/storage/postgres/batches.js';
import { claim as claimStatement } from '../../src/storage/postgres/claim.sql.js';
import { Client } from '../../src/storage/postgres/connections.js';
import type { ClaimRequest, NewTask, TaskStore } from '../../src/storage/port/task-store.js';
import { someConfig } from '../task-store/fixture.js';
import { openOn } from './fresh-store.js';
import { startPostgres, type PostgresServer } from './postgres-server.js';

let postgres: PostgresServer;
let url: string;
let databases = 0;
beforeAll(async () => void (postgres = await startPostgres()));
beforeEach(async () => void (url = await postgres.database(`slots_${++databases}`)));
afterAll(() => postgres.remove());

const now = systemClock.now();

async function openWithQueue(): Promise<TaskStore> {
  const store = await openOn(url);
  await store.putQueue({ queue: 'mail', config: someConfig(), now, by: 'ada' });
  return store;
}

function submit(store: TaskStore, count: number, over: Partial<NewTask> = {}) {
  const tasks = Array.from({ length: count }, () => ({
    id: systemRandom.ulid(now),
    queue: 'mail',
    handlerRef: 'mail.send',
    payload: Buffer.from('hello'),
    payloadContentType: 'text/plain',
    headers: {},
    priority: 4,
    groupKey: null,
    dueAt: now,
    expiresAt: null,
    submittedBy: 'shop',
    maxPending: 0,
    ...over,
  }));
  return store.insertTasks(tasks, now);
}

function claim(store: TaskStore, over: Partial<ClaimRequest> = {}) {
  return store.claimDue({
    queue: 'mail',
    limit: 10,
    now,
    nodeId: 'test',
    leaseExpiresAt: now + 45_000,
    newToken: () => systemRandom.ulid(now),
    maxInFlight: 10,
    dispatchPerSecond: 0,
    fifoGroups: false,
    ...over,
  });
}

function succeed(store: TaskStore, tasks: readonly WholeTask[]) {
  return store.settle(
    tasks.filter(isClaimed).map((task) => ({
      id: task.id,
      token: task.lease.token,
      now,
      verdict: { kind: 'succeeded' as const },
      attempt: attemptRecord(task, { outcome: 'SUCCEEDED', now }),
    })),
  );
}

/** Records the queues that the store reports work of from now on. */
function worksOf(store: TaskStore): string[] {
  const works: string[] = [];
  store.onWork((queue) => works.push(queue));
  return works;
}

test('settle: reports work if the last claim was held back by max_in_flight', async () => {
  const store = await openWithQueue();
  await submit(store, 3);
  const [task] = await claim(store, { maxInFlight: 1 });
  const works = worksOf(store);
  await succeed(store, [task!]);
  expect(works).toEqual(['mail']);
});

test('settle: reports no work if the last claim took all there was', async () => {
  const store = await openWithQueue();
  await submit(store, 3);
  const tasks = await claim(store);
  expect(tasks).toHaveLength(3);
  const works = worksOf(store);
  await succeed(store, tasks);
  expect(works).toEqual([]);
});

test('settle: reports work while a claim runs, which may not have seen the free slot', async () => {
  const store = await openWithQueue();
  await submit(store, 1);
  const tasks = await claim(store);
  const works = worksOf(store);
  const client = await lockedQueues();
  const running = claim(store);
  await succeed(store, tasks);
  expect(works).toEqual(['mail']);
  await client.query('COMMIT');
  expect(await running).toEqual([]);
});

test('settle: the end of a task of a group reports work', async () => {
  const store = await openWithQueue();
  await submit(store, 1, { groupKey: 'a' });
  const tasks = await claim(store, { fifoGroups: true });
  const works = worksOf(store);
  await succeed(store, tasks);
  expect(works).toEqual(['mail']);
});

test('settle: other servers report work only if they wait for a slot', async () => {
  const [full, idle, settling] = [await openWithQueue(), await openOn(url), await openOn(url)];
  await submit(settling, 3);
  const tasks = await claim(settling, { maxInFlight: 1 });
  expect(await claim(full, { maxInFlight: 1 })).toEqual([]);
  const [seenByFull, seenByIdle] = [worksOf(full), worksOf(idle)];
  await succeed(settling, tasks);
  await vi.waitFor(() => expect(seenByFull).toContain('mail'), { timeout: 60_000 });
  // The notification of the submit follows that of the settlement on the same connection.
  const count = seenByFull.length;
  await submit(settling, 1);
  await vi.waitFor(() => expect(seenByFull.length).toBeGreaterThan(count), { timeout: 60_000 });
  await vi.waitFor(() => expect(seenByIdle).toEqual(['mail']), { timeout: 60_000 });
});

test('claim: one that gets nothing commits without a wait for the disk', async () => {
  const store = await openWithQueue();
  const client = await connect();
  // The server of the tests never waits for its disk.
  await client.query('SET synchronous_commit = on');
  const settingAfterClaim = async () => {
    await client.query('BEGIN');
    const token = textArray([systemRandom.ulid(now)]);
    const leaseEnd = now + 45_000;
    const request = ['mail', 1, 10, now, leaseEnd, 'test', token, 0, false, 0];
    const values = [...request, null, null, null, now, null, 0, null];
    const { rows } = await client.query({ text: claimStatement.text, values, rowMode: 'array' });
    const inside = await client.query<{ setting: string }>(readSetting);
    await client.query('COMMIT');
    const after = await client.query<{ setting: string }>(readSetting);
    const claimed = rows.filter(([, position]) => position !== null);
    return [claimed.length, inside.rows[0]!.setting, after.rows[0]!.setting];
  };
  expect(await settingAfterClaim()).toEqual([0, 'off', 'on']);
  await submit(store, 1);
  expect(await settingAfterClaim()).toEqual([1, 'on', 'on']);
});

const readSetting = `SELECT current_setting('synchronous_commit') AS setting`;

async function connect(): Promise<Client> {
  const client = new Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

/** A transaction that holds the claim lock of every queue. */
async function lockedQueues(): Promise<Client> {
  const client = await connect();
  await client.query('BEGIN');
  await client.query('SELECT 1 FROM millrace.queue_locks FOR UPDATE');
  return client;
}
