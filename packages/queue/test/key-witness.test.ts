import { Simulation } from '@millrace/kit/simulation';
import { expect, test } from 'vitest';
import { nearClockChange } from '../simulation/calendar.js';
import { KeyWitness } from '../simulation/key-witness.js';
import { withRealDisk } from '../simulation/real-disk.js';
import { Witness } from '../simulation/witness.js';
import type { TaskStatus } from '../src/core/task.js';
import type { TaskStore } from '../src/storage/port/task-store.js';
import { settlementOf, someConfig, someTask } from './task-store/fixture.js';

test.each([
  ['a key that is held is given away', 'PENDING', null, 'stored', 'given away'],
  ['a key that is held for a time is given away', 'IN_FLIGHT', 100, 'stored', 'given away'],
  ['a key is free after its time', 'PENDING', 5, 'stored', undefined],
  ['a key may be gone after a clock that was ahead', 'IN_FLIGHT', 80, 'stored', undefined],
  ['a key is free when its task has ended', 'DEAD', null, 'stored', undefined],
  ['a key is free when its task has ended meanwhile', 'ending', null, 'stored', undefined],
  ['the holder is returned', 'PENDING', null, 'first', undefined],
  ['a task without the key is returned', 'PENDING', null, 'other', 'without the key'],
] as const)('key witness: %s', async (_name, status, until, answer, fault) => {
  const isEnding = status === 'ending';
  const statuses = new Map<string, TaskStatus>([['first', isEnding ? 'IN_FLIGHT' : status]]);
  const faults: string[] = [];
  const recorded = Promise.resolve().then(() => isEnding && statuses.set('first', 'SUCCEEDED'));
  const witness = new KeyWitness(
    (id) => statuses.get(id),
    (holds, message) => void (holds || faults.push(message)),
    () => recorded,
  );
  const task = (id: string) => someTask({ id, dueAt: 0, uniqueKey: 'k', uniqueUntil: until });
  witness.inserted(task('first'), { kind: 'stored' } as never, 0);
  witness.removed(90);
  const result =
    answer === 'stored' ? { kind: answer } : { kind: 'existing', task: { id: answer } };
  witness.inserted(task('second'), result as never, 10);
  await new Promise(setImmediate);
  expect(faults).toEqual(fault === undefined ? [] : [expect.stringContaining(fault)]);
});

test('key witness: a redriven task does not take a key that is held for a time', async () => {
  const statuses = new Map<string, TaskStatus>([['first', 'DEAD']]);
  const faults: string[] = [];
  const witness = new KeyWitness(
    (id) => statuses.get(id),
    (holds, message) => void (holds || faults.push(message)),
    () => Promise.resolve(),
  );
  const submit = (id: string, uniqueUntil: number | null, now: number) => {
    const task = someTask({ id, dueAt: 0, uniqueKey: 'k', uniqueUntil });
    witness.inserted(task, { kind: 'stored' } as never, now);
  };
  submit('first', null, 0);
  submit('second', 100, 1);
  statuses.set('second', 'SUCCEEDED');
  witness.redriven('first', 50);
  statuses.set('first', 'PENDING');
  submit('third', null, 100);
  await new Promise(setImmediate);
  expect(faults).toEqual([]);
});

/** Settles one task, submits another with the key of a third, and settles the third. */
async function freeKeyInBatch(world: Simulation, disk: TaskStore): Promise<string> {
  const witness = new Witness(world, disk, nearClockChange(world), false);
  const now = world.clock.now();
  const store = witness.view(world.clock, 'queue-1');
  const config = someConfig();
  const [queue, uniqueKey, dueAt] = ['mail', 'k', now];
  const newTask = (key?: string) => {
    const id = world.random.ulid(now);
    return someTask({ id, queue, dueAt, ...(key !== undefined && { uniqueKey: key }) });
  };
  await world.complete(store.putQueue({ queue, config, now, by: 'admin' }));
  await world.complete(store.insertTasks([newTask(), newTask(uniqueKey)], now));
  const { callback, lease, limits } = config;
  const request = {
    queue,
    limit: 2,
    now,
    nodeId: 'queue-1',
    leaseExpiresAt: now + callback.timeout_ms + lease.grace_ms,
    newToken: () => world.random.ulid(now),
    maxInFlight: limits.max_in_flight,
    dispatchPerSecond: limits.dispatch_per_second,
    fifoGroups: false,
  };
  const [other, holder] = await world.complete(store.claimDue(request));
  const settle = (task: typeof other) =>
    store.settle([{ ...settlementOf(task!, { kind: 'succeeded' }), now }]);
  const calls = [settle(other), store.insertTasks([newTask(uniqueKey)], now), settle(holder)];
  const [, inserted] = await world.complete(Promise.all(calls));
  await world.settle();
  return inserted![0]!.kind;
}

test('key witness: a settlement that joins a batch may run before an earlier insert', async () => {
  const world = new Simulation(1);
  expect(await withRealDisk(world, (disk) => freeKeyInBatch(world, disk))).toBe('stored');
});

test('key witness: finds a store that gives a held key away', async () => {
  const world = new Simulation(1);
  const forgetful = (disk: TaskStore) =>
    new Proxy(disk, {
      get: (target, property) => {
        const member: unknown = Reflect.get(target, property, target);
        if (property !== 'insertTasks') return member;
        return (tasks: Parameters<TaskStore['insertTasks']>[0], now: number) =>
          target.insertTasks(
            tasks.map(({ uniqueKey: _key, ...task }) => task),
            now,
          );
      },
    });
  const run = withRealDisk(world, async (disk) => {
    const store = new Witness(world, forgetful(disk), nearClockChange(world), false).view(
      world.clock,
      'queue-1',
    );
    const now = world.clock.now();
    const put = { queue: 'mail', config: someConfig(), now, by: 'admin' };
    await world.complete(store.putQueue(put));
    for (let count = 0; count < 2; count++) {
      const id = world.random.ulid(now);
      const task = someTask({ id, queue: 'mail', dueAt: now, uniqueKey: 'k' });
      await world.complete(store.insertTasks([task], now));
    }
    await world.settle();
  });
  await expect(run).rejects.toThrow('was given away');
});
