import { systemClock, type Clock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { seededRandom } from '@millrace/kit/random';
import { expect, test } from 'vitest';
import { jobAct, newJobState, type JobDefinition, type JobState } from '../core/job.js';
import { sampleConfig } from '../delivery/delivery.test-support.js';
import { MemoryStore } from '../../test/support/memory-store/index.js';
import { StorageUnavailable, type TaskStore } from '../storage/port/task-store.js';
import { Jobs } from './jobs.js';

const start = Date.UTC(2027, 0, 4, 12);
const key = { table: 'job', queue: 'mail', key: '01JD3Z8Q4M7X2N5V9RTBKWCH6E' } as const;
const random = seededRandom(3);
const never = new AbortController().signal;

async function setUp(deadCount: number) {
  const store = new MemoryStore();
  const clock: Clock & { time: number } = {
    ...systemClock,
    time: start,
    now: () => clock.time,
    monotonic: () => 0,
  };
  await store.putQueue({ queue: 'mail', config: sampleConfig(), now: start, by: 'ada' });
  await bury(store, deadCount, start);
  const jobs = (over: { store?: TaskStore; instance?: string } = {}) =>
    new Jobs({ store, clock, log: silentLog, instance: 'one', ...over });
  return {
    store,
    clock,
    jobs,
    state: async () => (await store.listRows(key))[0]!.value as JobState,
    audit: async () => {
      const records = await store.auditPage({ limit: 10 });
      return records.map(({ action, count }) => [action, count]).toReversed();
    },
    create: (over: Partial<JobDefinition> = {}) => createJob(store, clock.time, over),
  };
}

async function bury(store: TaskStore, count: number, at: number): Promise<string[]> {
  const tasks = Array.from({ length: count }, () => ({
    id: random.ulid(at),
    queue: 'mail',
    handlerRef: 'a',
    payload: new Uint8Array(0),
    payloadContentType: 'a/b',
    headers: {},
    priority: 4,
    groupKey: null,
    dueAt: at,
    expiresAt: at,
    submittedBy: 'ada',
    maxPending: 0,
  }));
  await store.insertTasks(tasks, at);
  await store.expireTasks({ now: at, limit: count });
  return tasks.map(({ id }) => id);
}

async function createJob(store: TaskStore, now: number, over: Partial<JobDefinition>) {
  const body: JobDefinition = {
    action: 'purge',
    selector: { filter: {} },
    target: { filter: {} },
    gapMs: 2,
    by: 'ada',
    ...over,
  };
  const audit = jobAct(key, body, null);
  await store.writeRows({
    puts: [{ ...key, ifRevision: 0, body, value: newJobState }],
    audit,
    now,
  });
}

test('a job purges what was dead at its creation, and is audited at its start and end', async () => {
  const { store, clock, jobs, state, audit, create } = await setUp(2_500);
  clock.time = start + 10;
  await create();
  await bury(store, 3, start + 20);
  clock.time = start + 30;
  await jobs().run(never);
  expect(await state()).toMatchObject({ status: 'done', count: 2_500, finishedAt: start + 30 });
  expect(await store.counts('mail')).toMatchObject({ dead: 3 });
  expect(await audit()).toEqual([
    ['config_write', null],
    ['purge', null],
    ['purge', 2_500],
  ]);
});

test('a job redrives by id or by filter, with the starts spread over time', async () => {
  const { store, jobs, state, create } = await setUp(3);
  const [id] = await bury(store, 1, start);
  await create({ action: 'redrive', target: { filter: {} }, gapMs: 100 });
  await jobs().run(never);
  expect(await state()).toMatchObject({ status: 'done', count: 4 });
  expect(await store.getTask(id!)).toMatchObject({ status: 'PENDING', redriveCount: 1 });
  const { dueByQueue } = await store.nextEventAt();
  expect(dueByQueue.get('mail')).toBe(start);
});

test('a job that is cut off at any call continues with an exact count', async () => {
  for (let failAt = 0; failAt < 12; failAt++) {
    const { store, clock, jobs, state, audit, create } = await setUp(2_100);
    await create();
    let calls = 0;
    const failing = new Proxy(store, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== 'function') return value;
        return async (...args: unknown[]) => {
          const fails = calls++ === failAt;
          // Half of the failures come after the commit.
          if (fails && failAt % 2 === 0) throw new StorageUnavailable('away');
          const result: unknown = await (value as (...all: unknown[]) => unknown).apply(
            target,
            args,
          );
          if (fails) throw new StorageUnavailable('away');
          return result;
        };
      },
    });
    await jobs({ store: failing })
      .run(never)
      .catch((error: unknown) => {
        if (!(error instanceof StorageUnavailable)) throw error;
      });
    clock.time += 60_000;
    await jobs({ instance: 'two' }).run(never);
    expect(await state(), `call ${failAt}`).toMatchObject({ status: 'done', count: 2_100 });
    expect((await audit()).slice(1)).toEqual([
      ['purge', null],
      ['purge', 2_100],
    ]);
  }
});

test('a job that another server works on is left to it until it stops', async () => {
  const { store, clock, jobs, state, create } = await setUp(1);
  await create();
  const owned = { ...newJobState, owner: 'other', ownedUntil: start + 5_000 };
  await store.writeRows({ puts: [{ ...key, ifRevision: 1, value: owned }], now: start });
  await jobs().run(never);
  expect(await state()).toMatchObject({ status: 'running', count: 0 });
  clock.time = start + 5_000;
  await jobs().run(never);
  expect(await state()).toMatchObject({ status: 'done', count: 1 });
});

test('a shutdown releases the job', async () => {
  const { jobs, state, create } = await setUp(1_500);
  await create();
  const stopping = new AbortController();
  const { signal } = stopping;
  const running = jobs();
  // Aborted during the first step.
  const done = running.run(signal);
  await Promise.resolve();
  stopping.abort();
  await done;
  expect(await state()).toMatchObject({ status: 'running', owner: null });
  await jobs({ instance: 'two' }).run(never);
  expect(await state()).toMatchObject({ status: 'done', count: 1_500 });
});

test('a fault ends the job as failed', async () => {
  const { store, jobs, state, audit, create } = await setUp(1);
  await create();
  const broken = new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (name === 'deadTasks') return () => Promise.reject(new Error('a bug'));
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  await jobs({ store: broken }).run(never);
  expect(await state()).toMatchObject({ status: 'failed', count: 0, finishedAt: start });
  expect((await audit()).at(-1)).toEqual(['purge', 0]);
});

test('ended jobs are forgotten after a week', async () => {
  const { store, clock, jobs, create } = await setUp(0);
  await create();
  await jobs().run(never);
  clock.time += 7 * 86_400_000;
  await jobs().run(never);
  expect(await store.listRows({ table: 'job' })).toHaveLength(1);
  clock.time++;
  await jobs().run(never);
  expect(await store.listRows({ table: 'job' })).toEqual([]);
});
