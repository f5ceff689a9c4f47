import { expect, test } from 'vitest';
import { StorageUnavailable } from '../storage/port/task-store.js';
import { answer, newScene, type Scene } from './delivery.test-support.js';

const queueOf = (request: { headers?: Readonly<Record<string, string>> }) =>
  request.headers!['X-Queue-Name']!;

/** Slow handlers; reports how many run at the same time. */
function slowHandler({ world, outbound }: Scene, durationMs: number) {
  const seen = { running: 0, most: 0 };
  outbound.handler = async () => {
    seen.most = Math.max(seen.most, ++seen.running);
    await world.clock.sleep(durationMs);
    seen.running--;
    return answer(200);
  };
  return seen;
}

test('no more than max_in_flight run at the same time, and freed capacity is used at once', async () => {
  const scene = await newScene();
  await scene.putQueue({ limits: { max_in_flight: 3 } });
  const seen = slowHandler(scene, 100);
  for (let i = 0; i < 10; i++) await scene.submit();
  await scene.world.runFor(399);
  expect(seen.most).toBe(3);
  expect(scene.outbound.requests).toHaveLength(10);
  await scene.world.runFor(1);
  expect((await scene.store.counts('mail')).pending).toBe(0);
});

test('a raised max_in_flight is used at once', async () => {
  const scene = await newScene();
  await scene.putQueue({ limits: { max_in_flight: 1 } });
  const seen = slowHandler(scene, 10_000);
  for (let i = 0; i < 5; i++) await scene.submit();
  await scene.world.settle();
  expect(seen.running).toBe(1);
  await scene.putQueue({ limits: { max_in_flight: 4 } });
  scene.delivery.queueChanged('mail');
  await scene.world.settle();
  expect(seen.running).toBe(4);
});

test('queues take turns when capacity is short', async () => {
  const scene = await newScene({ maxRunning: 1 });
  await scene.putQueue({}, 'a');
  await scene.putQueue({}, 'b');
  await scene.putQueue({}, 'c');
  slowHandler(scene, 10);
  for (let i = 0; i < 3; i++) for (const queue of ['a', 'b', 'c']) await scene.submit({ queue });
  await scene.world.runFor(1_000);
  const order = scene.outbound.requests.map(queueOf);
  expect(order).toHaveLength(9);
  for (let i = 0; i < 9; i += 3) expect(order.slice(i, i + 3).toSorted()).toEqual(['a', 'b', 'c']);
});

test('capacity freed by asynchronous work is used by a waiting queue', async () => {
  const scene = await newScene({ maxRunning: 1 });
  await scene.putQueue({}, 'a');
  await scene.putQueue({}, 'b');
  scene.outbound.handler = async () => {
    await scene.world.clock.sleep(10);
    return answer(202, { 'x-queue-async': 'true' });
  };
  await scene.submit({ queue: 'a' });
  await scene.submit({ queue: 'b' });
  await scene.world.runFor(15);
  expect(scene.outbound.requests.map(queueOf)).toEqual(['a', 'b']);
});

test('a queue that is full does not hold up another', async () => {
  const scene = await newScene();
  await scene.putQueue({ limits: { max_in_flight: 1 } }, 'stuck');
  await scene.putQueue({}, 'free');
  slowHandler(scene, 20_000);
  await scene.submit({ queue: 'stuck' });
  await scene.submit({ queue: 'stuck' });
  await scene.submit({ queue: 'free' });
  await scene.world.settle();
  expect(scene.outbound.requests.map(queueOf)).toEqual(['stuck', 'free']);
});

test('dispatch_per_second spreads the starts', async () => {
  const scene = await newScene();
  await scene.putQueue({ limits: { dispatch_per_second: 5 } });
  for (let i = 0; i < 20; i++) await scene.submit();
  await scene.world.settle();
  expect(scene.outbound.requests).toHaveLength(5);
  await scene.world.runFor(4_500);
  expect(scene.outbound.requests).toHaveLength(20);
});

test('a paused queue starts nothing until it is resumed', async () => {
  const { world, store, putQueue, submit, outbound, delivery } = await newScene();
  await putQueue();
  const change = { queue: 'mail', now: world.clock.now(), by: 'test' };
  await store.setPaused({ ...change, paused: true });
  await submit();
  await world.runFor(60_000);
  expect(outbound.requests).toHaveLength(0);
  await store.setPaused({ ...change, paused: false });
  delivery.queueChanged('mail');
  await world.settle();
  expect(outbound.requests).toHaveLength(1);
});

test('FIFO groups run one task after another, also over a retry', async () => {
  const scene = await newScene();
  await scene.putQueue({ ordering: { mode: 'group' }, retry: { initial_backoff_ms: 5_000 } });
  const ids: string[] = [];
  let failures = 1;
  scene.outbound.handler = () => (failures-- > 0 ? answer(500) : answer(200));
  for (let i = 0; i < 3; i++) ids.push(await scene.submit({ groupKey: 'acme' }));
  await scene.world.runFor(2_400);
  expect(scene.outbound.requests).toHaveLength(1);
  await scene.world.runFor(3_000);
  const order = scene.outbound.requests.map((request) => request.headers!['X-Queue-Task-Id']);
  expect(order).toEqual([ids[0], ids[0], ids[1], ids[2]]);
});

test('a lost hint only delays a task', async () => {
  const { world, putQueue, submit, outbound } = await newScene({}, (store) => {
    store.onWork = () => () => {};
    return store;
  });
  await putQueue();
  await submit();
  await world.runFor(2_000);
  expect(outbound.requests).toHaveLength(1);
});

test('what this server knows itself needs no hint: retries and the next of a group', async () => {
  const { world, putQueue, submit, outbound, delivery } = await newScene({}, (store) => {
    store.onWork = () => () => {};
    return store;
  });
  await putQueue({ ordering: { mode: 'group' }, retry: { initial_backoff_ms: 100 } });
  await world.runFor(100);
  let failures = 1;
  outbound.handler = () => answer(failures-- > 0 ? 500 : 200);
  for (let i = 0; i < 3; i++) await submit({ groupKey: 'acme' });
  delivery.workArrived('mail');
  await world.runFor(101);
  expect(outbound.requests).toHaveLength(4);
});

test('a retry needs no hint either where nothing is ordered', async () => {
  const { world, putQueue, submit, outbound, delivery } = await newScene({}, (store) => {
    store.onWork = () => () => {};
    return store;
  });
  await putQueue({ retry: { initial_backoff_ms: 1_000 } });
  await world.runFor(100);
  outbound.handler = async () => {
    await world.clock.sleep(50);
    return answer(500);
  };
  await submit();
  delivery.workArrived('mail');
  await world.runFor(1_051);
  expect(outbound.requests).toHaveLength(2);
});

test('a failing store is retried, and nothing is lost', async () => {
  const scene = await newScene();
  await scene.putQueue();
  const { store, world } = scene;
  const { claimDue, settle } = store;
  let isDown = true;
  store.claimDue = (request) =>
    isDown ? Promise.reject(new StorageUnavailable('down')) : claimDue.call(store, request);
  store.settle = (all) =>
    isDown ? Promise.reject(new StorageUnavailable('down')) : settle.call(store, all);
  const id = await scene.submit();
  await world.runFor(10_000);
  expect(scene.outbound.requests).toHaveLength(0);
  isDown = false;
  await world.runFor(2_000);
  expect(await scene.task(id)).toMatchObject({ status: 'SUCCEEDED', attempt: 1 });
  const lines = world.log.lines.map((line) => line.message);
  expect(lines.filter((line) => line === 'store call failed, retrying')).toHaveLength(1);
  expect(lines).toContain('store call succeeded again');
});

test('a single failure of the store costs a moment', async () => {
  const { world, store, putQueue, submit, outbound } = await newScene();
  await putQueue();
  const { claimDue } = store;
  let failures = 1;
  store.claimDue = (request) =>
    failures-- > 0 ? Promise.reject(new StorageUnavailable('away')) : claimDue.call(store, request);
  await world.runFor(500);
  await submit();
  await world.runFor(60);
  expect(outbound.requests).toHaveLength(1);
});

test('a store that is away at the start does not keep the server from starting', async () => {
  let isDown = true;
  const scene = await newScene({}, (store) => {
    const { nextEventAt } = store;
    store.nextEventAt = () =>
      isDown ? Promise.reject(new StorageUnavailable('down')) : nextEventAt.call(store);
    store.onWork = () => () => {};
    return store;
  });
  await scene.putQueue();
  await scene.submit();
  await scene.world.runFor(10_000);
  expect(scene.outbound.requests).toHaveLength(0);
  isDown = false;
  await scene.world.runFor(2_000);
  expect(scene.outbound.requests).toHaveLength(1);
});

test('a settle whose answer was lost is repeated, and runs nothing twice', async () => {
  const { store, world, putQueue, submit, task, outbound } = await newScene();
  await putQueue();
  const { settle } = store;
  let failures = 2;
  store.settle = async (all) => {
    const results = await settle.call(store, all);
    if (failures-- > 0) throw new StorageUnavailable('no answer');
    return results;
  };
  const id = await submit();
  await world.runFor(5_000);
  expect(await task(id)).toMatchObject({ status: 'SUCCEEDED', totalAttempts: 1 });
  expect((await task(id)).attempts).toHaveLength(1);
  expect(outbound.requests).toHaveLength(1);
});

test('one claim that the store cannot settle does not keep others from being settled', async () => {
  const { store, world, putQueue, submit, task } = await newScene();
  await putQueue();
  const [good, bad] = [await submit(), await submit()];
  const { settle } = store;
  store.settle = async (all) => {
    if (all.some((each) => each.id === bad)) throw new TypeError('cannot write this');
    return settle.call(store, all);
  };
  await world.runFor(10_000);
  expect(await task(good)).toMatchObject({ status: 'SUCCEEDED' });
  expect(await task(bad)).toMatchObject({ status: 'IN_FLIGHT' });
});

test('what ends in one turn of the event loop is settled in one call', async () => {
  const { world, store, outbound, putQueue, submit } = await newScene();
  await putQueue();
  let open = () => {};
  const gate = new Promise<void>((resolve) => (open = resolve));
  outbound.handler = () => gate.then(() => answer(200));
  const sizes: number[] = [];
  const { settle } = store;
  store.settle = (all) => {
    sizes.push(all.length);
    return settle.call(store, all);
  };
  for (let i = 0; i < 40; i++) await submit();
  await world.settle();
  open();
  await world.settle();
  expect(sizes).toEqual([40]);
});

test.each([
  { what: 'small', bytes: 4_096, second: 500 },
  { what: 'large', bytes: 4_097, second: 200 },
])("the store's preferred batch size is used when tasks are $what", async (tasks) => {
  const scene = await newScene();
  Object.assign(scene.store, { capabilities: { batchSizes: { claim: 500, deletion: 200 } } });
  await scene.putQueue({ limits: { max_in_flight: 2_000 } });
  slowHandler(scene, 10_000);
  await scene.store.setPaused({
    queue: 'mail',
    paused: true,
    now: scene.world.clock.now(),
    by: '',
  });
  const payload = Buffer.alloc(tasks.bytes);
  for (let i = 0; i < 210; i++) await scene.submit({ payload });
  const limits: number[] = [];
  const claimDue = scene.store.claimDue.bind(scene.store);
  scene.store.claimDue = (request) => {
    limits.push(request.limit);
    return claimDue(request);
  };
  await scene.store.setPaused({
    queue: 'mail',
    paused: false,
    now: scene.world.clock.now(),
    by: '',
  });
  scene.delivery.queueChanged('mail');
  await scene.world.settle();
  expect(limits.slice(0, 2)).toEqual([200, tasks.second]);
});
