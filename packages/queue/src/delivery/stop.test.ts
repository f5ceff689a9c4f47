import { expect, test } from 'vitest';
import { StorageUnavailable } from '../storage/port/task-store.js';
import { answer, newScene } from './delivery.test-support.js';

test('stop: claims nothing more', async () => {
  const { world, putQueue, submit, outbound, delivery } = await newScene();
  await putQueue();
  await world.complete(delivery.stop({ timeoutMs: 1_000 }));
  await submit();
  delivery.workArrived('mail');
  delivery.queueChanged('mail');
  await world.runFor(60_000);
  expect(outbound.requests).toHaveLength(0);
});

test('stop: callbacks that end within the drain time count', async () => {
  const { world, putQueue, submit, task, outbound, delivery } = await newScene();
  await putQueue();
  outbound.handler = async () => {
    await world.clock.sleep(4_000);
    return answer(200);
  };
  const id = await submit();
  await world.settle();
  const startedAt = world.timeline.elapsedMs;
  await world.complete(delivery.stop({ timeoutMs: 30_000 }));
  expect(world.timeline.elapsedMs - startedAt).toBe(4_000);
  expect(await task(id)).toMatchObject({ status: 'SUCCEEDED', attempt: 1 });
});

test('stop: running callbacks are aborted after the drain time and handed back', async () => {
  const { world, putQueue, submit, task, outbound, delivery } = await newScene();
  await putQueue();
  outbound.handler = () => new Promise(() => {});
  const id = await submit();
  await world.settle();
  await world.complete(delivery.stop({ timeoutMs: 2_000 }));
  const back = await task(id);
  expect(back).toMatchObject({
    status: 'PENDING',
    attempt: 0,
    totalAttempts: 0,
    lease: null,
    lastError: null,
    dueAt: world.clock.now(),
  });
  expect(back.attempts).toEqual([
    expect.objectContaining({ outcome: 'INTERRUPTED', attempt: 1, errorType: null }),
  ]);
});

test('stop: a claim in progress is handed back too', async () => {
  const { world, store, putQueue, submit, task, outbound, delivery } = await newScene();
  await putQueue();
  const { claimDue } = store;
  store.claimDue = async (request) => {
    const tasks = await claimDue.call(store, request);
    await world.clock.sleep(500);
    return tasks;
  };
  const id = await submit();
  await world.settle();
  await world.complete(delivery.stop({ timeoutMs: 2_000 }));
  expect(outbound.requests).toHaveLength(0);
  expect(await task(id)).toMatchObject({ status: 'PENDING', attempt: 0 });
  expect((await task(id)).attempts).toEqual([
    expect.objectContaining({ outcome: 'INTERRUPTED', url: null, traceId: null }),
  ]);
});

test('asynchronous tasks of handlers are left alone', async () => {
  const { world, putQueue, submit, task, outbound, delivery } = await newScene();
  await putQueue();
  outbound.handler = () => answer(202, { 'x-queue-async': 'true' });
  const id = await submit();
  await world.settle();
  await world.complete(delivery.stop({ timeoutMs: 0 }));
  expect(await task(id)).toMatchObject({ status: 'IN_FLIGHT', lease: { isAsync: true } });
});

test('a store that is away does not keep a server from stopping', async () => {
  const { world, store, putQueue, submit, task, outbound, delivery } = await newScene();
  await putQueue();
  outbound.handler = () => new Promise(() => {});
  const id = await submit();
  await world.settle();
  let calls = 0;
  store.settle = () => {
    calls++;
    return Promise.reject(new StorageUnavailable('down'));
  };
  const startedAt = world.timeline.elapsedMs;
  await world.complete(delivery.stop({ timeoutMs: 1_000 }));
  expect(world.timeline.elapsedMs - startedAt).toBe(6_000);
  expect(await task(id)).toMatchObject({ status: 'IN_FLIGHT' });
  expect(world.log.lines.at(-1)).toMatchObject({ level: 'error', fields: { running: 1 } });
  // The store may be closed now: nothing calls it any more.
  const callsByThen = calls;
  await world.runFor(30_000);
  expect(calls).toBe(callsByThen);
});

test('stop: is idempotent', async () => {
  const { world, delivery } = await newScene();
  const first = delivery.stop({ timeoutMs: 1_000 });
  expect(delivery.stop({ timeoutMs: 5 })).toBe(first);
  await world.complete(first);
});
