import { systemClock, type Clock } from '@millrace/kit/clock';
import { seededRandom } from '@millrace/kit/random';
import { expect, test } from 'vitest';
import { addPoint, emptyPoint } from '../core/history.js';
import { sampleConfig } from '../delivery/delivery.test-support.js';
import { MemoryStore } from '../../test/support/memory-store/index.js';
import {
  StorageUnavailable,
  type NewTask,
  type Settlement,
  type TaskStore,
} from '../storage/port/task-store.js';
import { History, TaskObserver } from './task-observer.js';

const start = Date.UTC(2027, 0, 4, 12);

async function setUp() {
  const store = new MemoryStore();
  const clock: Clock & { time: number } = { ...systemClock, time: start, now: () => clock.time };
  await store.putQueue({ queue: 'mail', config: sampleConfig(), now: start, by: 'ada' });
  const newHistory = (instance: string, on: TaskStore = store) =>
    new History({ store: on, clock, instance });
  return { store, clock, newHistory };
}

async function sumOf(store: TaskStore, stepS: number) {
  const history = new History({ store, clock: systemClock, instance: 'reader' });
  const rows = await history.read('mail', stepS, 0);
  const sum = emptyPoint();
  for (const { point } of rows) addPoint(sum, point);
  return { ...sum, rows: rows.length };
}

test('steps that are over are stored in all resolutions, with one write', async () => {
  const { store, clock, newHistory } = await setUp();
  const history = newHistory('A');
  let writes = 0;
  const { writeRows } = store;
  store.writeRows = (write) => (writes++, writeRows.call(store, write));
  for (let second = 0; second < 1_200; second++) {
    clock.time = start + second * 1_000;
    history.count('mail', 'submitted');
    history.waited('mail', second);
    if (second % 10 === 0) await history.flush();
  }
  expect(writes).toBe(119);
  expect(await sumOf(store, 10)).toMatchObject({ submitted: 1_190, rows: 119 });
  expect(await sumOf(store, 60)).toMatchObject({ submitted: 1_190, rows: 20 });
  expect(await sumOf(store, 900)).toMatchObject({ submitted: 1_190, rows: 2 });
  expect(history.unsaved('mail', 0)).toHaveLength(1);
  await history.flush({ isLast: true });
  for (const stepS of [10, 60, 900]) expect((await sumOf(store, stepS)).submitted).toBe(1_200);
  expect(history.unsaved('mail', 0)).toEqual([]);
});

test('a pause in the middle of a longer step does not reset it', async () => {
  const { store, clock, newHistory } = await setUp();
  const history = newHistory('A');
  for (const second of [0, 30, 400, 880, 2_000]) {
    clock.time = start + second * 1_000;
    history.count('mail', 'succeeded');
    for (let i = 0; i < 5; i++) {
      clock.time += 10_000;
      await history.flush();
    }
  }
  expect(await sumOf(store, 900)).toMatchObject({ succeeded: 5 });
  expect(await newHistory('B').totals('mail')).toMatchObject({ succeeded: 5 });
});

test('a write that fails is repeated, and read from memory until then', async () => {
  const { store, clock, newHistory } = await setUp();
  let isAway = true;
  const flaky = new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (name === 'writeRows' && isAway) {
        return () => Promise.reject(new StorageUnavailable('away'));
      }
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  const history = newHistory('A', flaky);
  history.count('mail', 'dead');
  clock.time += 10_000;
  await expect(history.flush()).rejects.toThrow('away');
  history.count('mail', 'dead');
  expect(await history.totals('mail')).toMatchObject({ dead: 2 });
  clock.time += 10_000;
  isAway = false;
  await history.flush();
  expect(await sumOf(store, 10)).toMatchObject({ dead: 2, rows: 2 });
  expect(history.unsaved('mail', 0)).toEqual([]);
  expect(await history.totals('mail')).toMatchObject({ dead: 2 });
});

test('servers add up, and nothing is written while nothing happens', async () => {
  const { store, clock, newHistory } = await setUp();
  for (const instance of ['A', 'B']) {
    const history = newHistory(instance);
    await history.flush();
    history.count('mail', 'failed', 3);
    await history.flush({ isLast: true });
  }
  expect(await sumOf(store, 60)).toMatchObject({ failed: 6, rows: 2 });
  expect(clock.time).toBe(start);
});

test('the observer counts submits, settlements, expiries and cancellations', async () => {
  const { store, clock, newHistory } = await setUp();
  const history = newHistory('A');
  const observer = new TaskObserver({ history, clock });
  const submit = async (...tasks: NewTask[]) =>
    observer.submitted(tasks, await store.insertTasks(tasks, start), start);
  const settle = async (settlements: Settlement[]) =>
    observer.settled(settlements, await store.settle(settlements));
  const random = seededRandom(1);
  const task = (over: object = {}) => ({
    id: random.ulid(start),
    queue: 'mail',
    handlerRef: 'a',
    payload: new Uint8Array(0),
    payloadContentType: 'a/b',
    headers: {},
    priority: 4,
    groupKey: null,
    dueAt: start,
    expiresAt: null,
    submittedBy: 'ada',
    maxPending: 0,
    ...over,
  });
  const first = task();
  const delayed = task({ dueAt: start + 5_000 });
  await submit(first, first, delayed, task({ dueAt: start + 5_000 }));
  await submit(task({ expiresAt: start + 1 }));
  const expired = await store.expireTasks({ now: start + 1, limit: 9 });
  for (const { queue } of expired) observer.expired(queue);
  let tokens = 0;
  const now = start + 5_010;
  const claimed = await store.claimDue({
    queue: 'mail',
    limit: 9,
    now,
    nodeId: 'n',
    leaseExpiresAt: now + 9_000,
    newToken: () => `t${++tokens}`,
    maxInFlight: 9,
    dispatchPerSecond: 0,
    fifoGroups: false,
  });
  expect(claimed).toHaveLength(3);
  const attempt = { attempt: 1, redrive: 0, startedAt: now, durationMs: 100 } as never;
  const verdicts = [
    { kind: 'succeeded' },
    { kind: 'retry', dueAt: now + 1 },
    { kind: 'dead', reason: 'PERMANENT' },
  ] as const;
  const settlements = claimed.map(({ id, lease }, i) => {
    return { id, token: lease!.token, now, verdict: verdicts[i]!, attempt };
  });
  await settle(settlements);
  await settle(settlements);
  const { point } = history.unsaved('mail', 0)[0]!;
  expect(point).toMatchObject({ submitted: 4, succeeded: 1, failed: 2, dead: 2, cancelled: 0 });
  observer.cancelled('mail', 2);
  expect(point).toMatchObject({ submitted: 4, dead: 4, cancelled: 2 });
  // One waited since its submit, two since their due time.
  expect(Object.values(point.wait).toSorted((a, b) => a - b)).toEqual([1, 2]);
  expect(Object.values(point.run)).toEqual([3]);
});
