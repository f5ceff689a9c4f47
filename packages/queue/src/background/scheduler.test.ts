import { silentLog } from '@millrace/kit/log';
import { systemClock, type Clock } from '@millrace/kit/clock';
import { seededRandom } from '@millrace/kit/random';
import { ulidTime } from '@millrace/kit/ulid';
import { describe, expect, test } from 'vitest';
import {
  newScheduleState,
  withPause,
  type ScheduleDefinition,
  type ScheduleState,
} from '../core/schedule.js';
import { newObserver, sampleConfig } from '../delivery/delivery.test-support.js';
import { MemoryStore } from '../../test/support/memory-store/index.js';
import type { TaskStore } from '../storage/port/task-store.js';
import { Scheduler } from './scheduler.js';

const start = Date.UTC(2027, 0, 4, 12);
const minute = 60_000;
const hour = 60 * minute;
const daily = { cron: '0 3 * * *' };

interface Options {
  definition?: Partial<ScheduleDefinition>;
  maxPending?: number;
  from?: number;
}

/** A scheduler on a store with the queue `mail` and one schedule. */
async function setUp(options: Options = {}) {
  const { definition: over = daily, maxPending = 0, from = start } = options;
  const store = new MemoryStore();
  const now = () => clock.time;
  const clock: Clock & { time: number } = { ...systemClock, time: start, now, monotonic: now };
  const config = sampleConfig();
  config.limits = { ...config.limits, max_pending: maxPending };
  await store.putQueue({ queue: 'mail', config, now: start, by: 'ada' });
  const definition: ScheduleDefinition = {
    timezone: 'UTC',
    task: { handler_ref: 'report.build', payload: 'aGVsbG8=' },
    overlap: 'allow',
    catch_up: 'last',
    jitter_ms: 0,
    description: '',
    ...over,
  };
  const state = newScheduleState(definition, undefined, { now: from, by: 'ada' });
  const key = { table: 'schedule', queue: 'mail', key: 'report' } as const;
  const puts = [{ ...key, ifRevision: 0, body: definition, value: state }];
  await store.writeRows({ puts, now: start });
  const scheduler = new Scheduler({
    store,
    clock,
    log: silentLog,
    observer: newObserver(store, clock),
  });
  return {
    store,
    clock,
    definition,
    scheduler,
    key,
    runAt: (time: number) => {
      clock.time = time;
      return scheduler.run();
    },
    state: async () => (await store.listRows({ table: 'schedule' }))[0]!.value as ScheduleState,
  };
}

async function claimAll(store: TaskStore, now: number) {
  let tokens = 0;
  return store.claimDue({
    queue: 'mail',
    limit: 1_000,
    now,
    nodeId: 'n',
    leaseExpiresAt: now + hour,
    newToken: () => `t${++tokens}`,
    maxInFlight: 1_000,
    dispatchPerSecond: 0,
    fifoGroups: false,
  });
}

test('a run submits the task of the schedule at its time', async () => {
  const { store, runAt, state } = await setUp();
  const firstRun = Date.UTC(2027, 0, 5, 3);
  expect(await runAt(firstRun - 2_000)).toBe(2_000);
  expect(await store.counts('mail')).toMatchObject({ pending: 0 });
  expect(await runAt(firstRun)).toBe(5_000);
  const [task] = await claimAll(store, firstRun);
  expect(task).toMatchObject({ handlerRef: 'report.build', submittedBy: 'ada', priority: 4 });
  expect(Buffer.from(task!.payload).toString()).toBe('hello');
  expect(ulidTime(task!.id)).toBe(firstRun);
  expect(await state()).toMatchObject({
    lastRunAt: firstRun,
    lastTaskId: task!.id,
    nextRunAt: firstRun + 24 * hour,
  });
  await runAt(firstRun + 10);
  expect(await store.counts('mail')).toMatchObject({ pending: 0 });
});

describe('times that passed while no server ran', () => {
  const everyMinute = { cron: '* * * * *' };
  const backAt = start + 3 * hour + 30_000;
  test.each([
    ['none', everyMinute, backAt, 0],
    ['none', everyMinute, start + 3 * hour + 5_000, 1],
    ['last', everyMinute, backAt, 1],
    ['all', everyMinute, start + 5 * minute, 5],
    ['all', everyMinute, backAt, 100],
    ['all', { every_ms: 1_000 }, backAt, 100],
  ] as const)('%s with %o', async (catchUp, timing, now, count) => {
    const { store, runAt, state } = await setUp({ definition: { ...timing, catch_up: catchUp } });
    await runAt(now);
    const tasks = await claimAll(store, now);
    expect(tasks).toHaveLength(count);
    const last = tasks.map(({ id }) => ulidTime(id)).toSorted((a, b) => a - b);
    const stepMs = 'cron' in timing ? minute : 1_000;
    expect(last).toEqual(
      Array.from({ length: count }, (_, i) => {
        const latest = Math.floor(now / stepMs) * stepMs;
        return latest - (count - 1 - i) * stepMs;
      }),
    );
    expect((await state()).nextRunAt).toBe(Math.floor(now / stepMs + 1) * stepMs);
  });
});

test.each([
  ['none', 0, false, 0],
  ['none', 500, true, 1],
  ['none', 1_500, true, 0],
  ['last', 1_500, false, 1],
] as const)('%s after a restart %d ms late (shared store: %s)', async (...row) => {
  const [catchUp, lateMs, isShared, count] = row;
  const { store, clock } = await setUp({ definition: { every_ms: 5_000, catch_up: catchUp } });
  Object.defineProperty(store, 'capabilities', { value: { isShared } });
  clock.time = start + 10_000 + lateMs + 1;
  await new Scheduler({ store, clock, log: silentLog, observer: newObserver(store, clock) }).run();
  expect(await store.counts('mail')).toMatchObject({ pending: count });
});

describe('overlap skip', () => {
  const definition = { every_ms: minute, overlap: 'skip' } as const;

  test('a run is left out while a task is PENDING or IN_FLIGHT', async () => {
    const { store, runAt, state } = await setUp({ definition });
    await runAt(start + minute);
    await runAt(start + 2 * minute);
    expect(await store.counts('mail')).toMatchObject({ pending: 1 });
    const [task] = await claimAll(store, start + 2 * minute);
    await runAt(start + 3 * minute);
    expect(await store.counts('mail')).toMatchObject({ pending: 0, inFlight: 1 });
    expect(await state()).toMatchObject({
      lastRunAt: start + minute,
      nextRunAt: start + 4 * minute,
    });
    await store.settle([
      {
        id: task!.id,
        token: task!.lease!.token,
        now: start + 3 * minute,
        verdict: { kind: 'succeeded' },
        attempt: {} as never,
      },
    ]);
    await runAt(start + 4 * minute);
    expect(await store.counts('mail')).toMatchObject({ pending: 1 });
    expect(await state()).toMatchObject({ lastRunAt: start + 4 * minute });
  });

  test('a run is left out while a redriven task is PENDING', async () => {
    const { store, runAt, state } = await setUp({ definition });
    await runAt(start + minute);
    const [task] = await claimAll(store, start + minute);
    const end = { id: task!.id, token: task!.lease!.token, attempt: {} as never };
    const verdict = { kind: 'dead', reason: 'PERMANENT' } as const;
    await store.settle([{ ...end, now: start + minute, verdict }]);
    await runAt(start + 2 * minute);
    const [second] = await claimAll(store, start + 2 * minute);
    const done = { id: second!.id, token: second!.lease!.token, attempt: {} as never };
    const now = start + 2 * minute;
    await store.settle([{ ...done, now, verdict: { kind: 'succeeded' } }]);
    await store.actOnDead({
      action: 'redrive',
      queue: 'mail',
      ids: [task!.id],
      diedBy: now,
      now,
      by: 'ada',
      selector: {},
      dueAt: () => now,
    });
    await runAt(start + 3 * minute);
    expect(await store.counts('mail')).toMatchObject({ pending: 1 });
    expect(await state()).toMatchObject({ lastRunAt: now, openIds: [task!.id] });
  });

  test('of several missed times one runs', async () => {
    const { store, runAt } = await setUp({ definition: { ...definition, catch_up: 'all' } });
    await runAt(start + 10 * minute);
    expect(await store.counts('mail')).toMatchObject({ pending: 1 });
  });
});

test('jitter makes tasks due later, by the same amount on every server', async () => {
  const dueTimes = async () => {
    const { store, runAt } = await setUp({
      definition: { every_ms: minute, jitter_ms: 20_000, catch_up: 'all' },
    });
    await runAt(start + 50 * minute);
    const tasks = await claimAll(store, start + hour);
    return tasks.map(({ id }) => id);
  };
  const [one, other] = [await dueTimes(), await dueTimes()];
  expect(one).toHaveLength(50);
  expect(one).toEqual(other);
  // Claims are in order of the due time: with jitter below the interval that is the order of runs.
  expect(one).toEqual(one.toSorted());
});

test('a full queue gets no task, and the schedule goes on', async () => {
  const { store, runAt, state } = await setUp({
    definition: { every_ms: minute },
    maxPending: 1,
  });
  await runAt(start + minute);
  await runAt(start + 2 * minute);
  expect(await store.counts('mail')).toMatchObject({ pending: 1 });
  expect(await state()).toMatchObject({
    lastRunAt: start + minute,
    nextRunAt: start + 3 * minute,
  });
});

test('a paused schedule does not run, and a resumed one catches nothing up', async () => {
  const { store, definition, key, runAt, state } = await setUp({ definition: { every_ms: hour } });
  const paused = withPause(definition, await state(), true, start);
  await store.writeRows({ puts: [{ ...key, ifRevision: 1, value: paused }], now: start });
  await runAt(start + 5 * hour);
  expect(await store.counts('mail')).toMatchObject({ pending: 0 });
  const now = start + 5.5 * hour;
  const resumed = withPause(definition, await state(), false, now);
  await store.writeRows({ puts: [{ ...key, ifRevision: 2, value: resumed }], now });
  await runAt(now);
  expect(await store.counts('mail')).toMatchObject({ pending: 0 });
  expect((await state()).nextRunAt).toBe(start + 6 * hour);
});

test('a write that keeps the timing keeps the next run', async () => {
  const { definition, state } = await setUp({ definition: { every_ms: hour } });
  const before = { definition, state: await state() };
  const later = { now: start + minute, by: 'bob' };
  const same = newScheduleState({ ...definition, description: 'x' }, before, later);
  expect(same).toMatchObject({ version: 2, nextRunAt: start + hour, by: 'bob' });
  const changed = newScheduleState({ ...definition, every_ms: 2 * hour }, before, later);
  expect(changed).toMatchObject({ version: 2, nextRunAt: start + minute + 2 * hour });
});

test('several servers that stop and start make every run once', async () => {
  const random = seededRandom(7);
  const definition = { cron: '*/15 * * * *', timezone: 'Europe/Berlin', catch_up: 'all' } as const;
  const from = Date.UTC(2027, 9, 25);
  const { store, clock, scheduler } = await setUp({ definition, from });
  const lateStore = new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return async (...args: unknown[]) => {
        // Calls of the servers interleave in a different order each time.
        for (let i = random.integer(0, 3); i > 0; i--) await Promise.resolve();
        return (value as (...all: unknown[]) => unknown).apply(target, args);
      };
    },
  });
  const servers = [scheduler, ...Array.from({ length: 3 }, () => lateStore)].map((each) =>
    each instanceof Scheduler
      ? each
      : new Scheduler({
          store: each as TaskStore,
          clock,
          log: silentLog,
          observer: newObserver(store, clock),
        }),
  );
  // Over the end of summer time in 2027, with outages of up to 20 hours.
  const end = Date.UTC(2027, 10, 8);
  clock.time = from;
  while (clock.time < end) {
    clock.time += random.integer(1, random.integer(0, 9) === 0 ? 20 * hour : 40 * minute);
    await Promise.all(servers.map((server) => server.run()));
  }
  const tasks = await store
    .claimDue({
      queue: 'mail',
      limit: 1_000_000,
      now: end + 2 * 24 * hour,
      nodeId: 'n',
      leaseExpiresAt: end * 2,
      newToken: () => 't',
      maxInFlight: 1_000_000,
      dispatchPerSecond: 0,
      fifoGroups: false,
    })
    .then((claimed) => claimed.map(({ id }) => ulidTime(id)));
  const lastRun = Math.max(...tasks);
  const expected: number[] = [];
  const doubled = { from: Date.UTC(2027, 9, 31, 1), to: Date.UTC(2027, 9, 31, 2) };
  for (let at = from + 15 * minute; at <= lastRun; at += 15 * minute) {
    if (at < doubled.from || at >= doubled.to) expected.push(at);
  }
  expect(tasks.toSorted((a, b) => a - b)).toEqual(expected);
});
