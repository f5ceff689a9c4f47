import { systemClock } from '@millrace/kit/clock';
import { systemRandom } from '@millrace/kit/random';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { WholeTask } from '../../src/core/task.js';
import { MemoryStore } from '../support/memory-store/index.js';
import type { ClaimRequest, NewTask, TaskStore } from '../../src/storage/port/task-store.js';
import { someConfig } from '../task-store/fixture.js';
import { tableProblems } from './consistency.js';
import { openOn } from './fresh-store.js';
import { startPostgres, type PostgresServer } from './postgres-server.js';

let postgres: PostgresServer;
let url: string;
let databases = 0;
beforeAll(async () => void (postgres = await startPostgres()));
beforeEach(async () => void (url = await postgres.database(`claims_${++databases}`)));
afterAll(() => postgres.remove());

const open = () => openOn(url);

const start = systemClock.now();

function claim(store: TaskStore, limit: number, over: Partial<ClaimRequest> = {}) {
  const { now = start, maxInFlight = 10_000 } = over;
  const request: ClaimRequest = {
    queue: 'mail',
    limit,
    now,
    nodeId: 'test',
    leaseExpiresAt: now + 45_000,
    newToken: () => systemRandom.ulid(now),
    maxInFlight,
    dispatchPerSecond: 0,
    fifoGroups: false,
    ...over,
  };
  return store.claimDue(request);
}

function tasksFrom(serial: number, count: number, changes: Partial<NewTask> = {}): NewTask[] {
  return Array.from({ length: count }, (_, i) => ({
    id: `01K000000000000000000${String(serial + i).padStart(5, '0')}`,
    queue: 'mail',
    handlerRef: `mail.send.${(serial + i) % 3}`,
    payload: Buffer.from(`hello ${serial + i}`),
    payloadContentType: 'text/plain',
    headers: i % 2 === 0 ? {} : { 'x-n': String(i) },
    priority: 4,
    groupKey: null,
    dueAt: start,
    expiresAt: i % 5 === 0 ? start + 3_600_000 : null,
    submittedBy: 'shop',
    maxPending: 0,
    ...changes,
  }));
}

/** What both stores must agree on. */
function shown({ lease, payload, ...rest }: WholeTask): unknown {
  return { ...rest, payload: Buffer.from(payload).toString(), node: lease?.nodeId };
}

function retry({ id, attempt, lease }: WholeTask) {
  return {
    id,
    token: lease!.token,
    now: start,
    verdict: { kind: 'retry' as const, dueAt: start },
    attempt: {
      attempt,
      redrive: 0,
      startedAt: start,
      endedAt: start,
      durationMs: 0,
      outcome: 'FAILED' as const,
      errorType: 'HTTP_500',
      message: 'no',
      httpStatus: 500,
      retryAfterMs: null,
      nextAttemptAt: start,
      responseSnippet: null,
      url: 'http://127.0.0.1/',
      remoteIp: null,
      nodeId: 'test',
      traceId: null,
    },
    error: { errorType: 'HTTP_500', message: 'no', httpStatus: 500, at: start },
  };
}

/** Everything that may happen between two claims of a busy queue. */
async function play(store: TaskStore): Promise<unknown[][]> {
  const claimed: WholeTask[][] = [];
  const take = async (limit: number, how = {}) => {
    const tasks = await claim(store, limit, how);
    claimed.push(tasks);
    return tasks;
  };
  await store.putQueue({ queue: 'mail', config: someConfig(), now: start, by: 'ada' });
  await store.insertTasks(tasksFrom(0, 1_000), start);
  for (let i = 0; i < 3; i++) await take(60);
  const fourth = await take(60);
  await store.settle(fourth.map(retry));
  for (let i = 0; i < 2; i++) await take(60);
  await store.insertTasks(tasksFrom(1_000, 100, { priority: 7 }), start);
  for (let i = 0; i < 3; i++) await take(60);
  await store.insertTasks(tasksFrom(1_100, 1, { priority: 9, dueAt: start + 500 }), start);
  await take(60, { now: start + 499 });
  await take(60, { now: start + 500 });
  for (let i = 0; i < 2; i++) await take(50);
  await store.setPaused({ queue: 'mail', paused: true, now: start, by: 'ada' });
  await take(60);
  await store.setPaused({ queue: 'mail', paused: false, now: start, by: 'ada' });
  for (let i = 0; i < 2; i++) await take(50);
  await take(60, { maxInFlight: claimed.flat().length - fourth.length + 3 });
  for (let i = 0; i < 2; i++) await take(50);
  await store.insertTasks(tasksFrom(1_200, 20, { groupKey: 'a' }), start);
  for (let i = 0; i < 10; i++) await take(60);
  return claimed.map((tasks) => tasks.map(shown));
}

test('claim: takes the same tasks as the memory store', async () => {
  const store = await open();
  const here = await play(store);
  expect(here).toEqual(await play(new MemoryStore()));
  expect(here.flat()).toHaveLength(1_000 + 60 + 100 + 1 + 20);
  expect(await tableProblems(postgres, url)).toEqual([]);
});

test('claim: works on a queue that was deleted and created again', async () => {
  const store = await open();
  const put = { queue: 'mail', config: someConfig(), now: start, by: 'ada' };
  await store.putQueue(put);
  await store.insertTasks(tasksFrom(0, 250), start);
  const tasks = [];
  for (let i = 0; i < 5; i++) tasks.push(...(await claim(store, 50)));
  expect(tasks).toHaveLength(250);
  await store.settle(
    tasks.map((task) => {
      const { error: _, ...settlement } = retry(task);
      return { ...settlement, verdict: { kind: 'succeeded' as const } };
    }),
  );
  expect(await store.deleteQueue({ queue: 'mail', now: start, by: 'ada' })).toBe('deleted');
  await store.putQueue(put);
  await store.insertTasks(tasksFrom(500, 120), start);
  expect(await claim(store, 60)).toHaveLength(60);
  expect(await claim(store, 60)).toHaveLength(60);
  expect(await tableProblems(postgres, url)).toEqual([]);
});

test('claim: servers side by side take each task once, within max_in_flight', async () => {
  const stores = await Promise.all([open(), open(), open()]);
  await stores[0]!.putQueue({ queue: 'mail', config: someConfig(), now: start, by: 'ada' });
  await stores[0]!.insertTasks(tasksFrom(0, 3_000), start);
  const taken: WholeTask[] = [];
  await Promise.all(
    Array.from({ length: 6 }, async (_, loop) => {
      for (let i = 0; i < 10; i++) {
        taken.push(...(await claim(stores[loop % 3]!, 60, { maxInFlight: 2_500 })));
      }
    }),
  );
  const ids = taken.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.length).toBeLessThanOrEqual(2_500);
  expect((await stores[1]!.counts('mail')).inFlight).toBe(ids.length);
  expect(await tableProblems(postgres, url)).toEqual([]);
});

test('claim: finds a task that is due long before those already claimed', async () => {
  const [store, other] = [await open(), await open()];
  await store.putQueue({ queue: 'mail', config: someConfig(), now: start, by: 'ada' });
  await store.insertTasks(tasksFrom(0, 10, { dueAt: start - 1_000 }), start);
  expect(await claim(store, 100)).toHaveLength(10);
  await other.insertTasks(tasksFrom(10, 1, { dueAt: start - 3_600_000 }), start);
  expect(await claim(store, 100)).toHaveLength(1);
  await store.insertTasks(tasksFrom(11, 1, { dueAt: start - 500_000, priority: 0 }), start);
  expect(await claim(other, 100)).toHaveLength(1);
});

test('claim: a sweep finds a task below the low-water mark that no writer noticed', async () => {
  const store = await open();
  await store.putQueue({ queue: 'mail', config: someConfig(), now: start, by: 'ada' });
  await store.insertTasks(tasksFrom(0, 2), start);
  // As after a commit that took long: the marks were raised meanwhile.
  await postgres.sql(url, `UPDATE millrace.low_water_marks SET due_at = ${start + 60_000}`);
  const found = async () => {
    const [tasks, counts] = [await claim(store, 1), await store.counts('mail')];
    return [tasks.length, counts.oldestDueAt];
  };
  await expect.poll(found).toEqual([1, start]);
});

test('claim: low-water marks are raised behind claimed tasks', async () => {
  const store = await open();
  await store.putQueue({ queue: 'mail', config: someConfig(), now: start, by: 'ada' });
  await store.insertTasks(tasksFrom(0, 10), start);
  await claim(store, 100);
  const text = 'SELECT priority FROM millrace.low_water_marks WHERE due_at > 0 ORDER BY 1';
  expect(await postgres.sql(url, text)).toEqual([{ priority: -1 }, { priority: 4 }]);
});

test('claim: takes only tasks for the handlers it names, and later the others', async () => {
  const store = await open();
  await store.putQueue({ queue: 'mail', config: someConfig(), now: start, by: 'ada' });
  await store.insertTasks(tasksFrom(0, 30), start);
  const request = { handlers: ['mail.send.1', 'mail.send.2'] };
  const some = await claim(store, 100, request);
  expect(new Set(some.map(({ handlerRef }) => handlerRef))).toEqual(new Set(request.handlers));
  expect(some).toHaveLength(20);
  expect(await claim(store, 100)).toHaveLength(10);
});
