import { expect, test } from 'vitest';
import { answer, newScene } from './delivery.test-support.js';

const dayMs = 86_400_000;

test('succeeded tasks go when their time is over and leave a tombstone for a day', async () => {
  const { world, store, putQueue, submit } = await newScene();
  await putQueue({ retention: { succeeded_ms: 3_600_000 } });
  const id = await submit();
  await world.runFor(3_590_000);
  expect(await store.getTask(id)).toMatchObject({ status: 'SUCCEEDED', attempt: 1 });
  await world.runFor(80_000);
  expect(await store.getTask(id)).toMatchObject({
    id,
    status: 'SUCCEEDED',
    purgedAt: expect.any(Number),
  });
  await world.runFor(dayMs - 120_000);
  expect(await store.getTask(id)).toBeDefined();
  await world.runFor(200_000);
  expect(await store.getTask(id)).toBeUndefined();
});

test('dead tasks are kept until purged, unless the queue says how long', async () => {
  const { world, putQueue, submit, store, outbound, delivery } = await newScene();
  outbound.handler = () => answer(400);
  await putQueue();
  const id = await submit();
  await world.runFor(1.2 * dayMs);
  expect(await store.getTask(id)).toMatchObject({ status: 'DEAD', attempt: 1 });
  await putQueue({ retention: { dead_ms: 1_000 } });
  delivery.queueChanged('mail');
  await world.runFor(2_500);
  expect(await store.getTask(id)).toMatchObject({ purgedAt: expect.any(Number) });
});

test('short retentions are kept within seconds, by the config of now', async () => {
  const { world, putQueue, submit, store, metrics } = await newScene();
  await putQueue({ retention: { succeeded_ms: 2_000 } });
  const id = await submit();
  await world.runFor(6_000);
  expect(await store.getTask(id)).toMatchObject({ purgedAt: expect.any(Number) });
  expect(await metrics.text()).toContain(
    'millrace_queue_tasks_deleted_total{queue="mail",status="SUCCEEDED"} 1',
  );
});

test('zero keeps succeeded tasks for good', async () => {
  const { world, putQueue, submit, store } = await newScene();
  await putQueue({ retention: { succeeded_ms: 0 } });
  const id = await submit();
  await world.runFor(1.2 * dayMs);
  expect(await store.getTask(id)).toMatchObject({ status: 'SUCCEEDED', attempt: 1 });
});

test('more than one step’s worth of finished tasks goes in one sweep', async () => {
  const { world, putQueue, store } = await newScene();
  await putQueue({ retention: { succeeded_ms: 5_000 } });
  let left = 2_500;
  const limits: number[] = [];
  store.deleteFinished = ({ limit }) => {
    limits.push(limit);
    const deleted = Math.min(limit, left);
    left -= deleted;
    return Promise.resolve(deleted);
  };
  await world.runFor(2_500);
  expect(left).toBe(0);
  expect(limits.slice(0, 5)).toEqual([20, 40, 80, 100, 100]);
});

test('where deleting takes long it goes by few at a time, until that would never end', async () => {
  const { world, putQueue, store } = await newScene();
  await putQueue({ retention: { succeeded_ms: 5_000 } });
  const limits: number[] = [];
  const startedAt: number[] = [];
  store.deleteFinished = async ({ limit }) => {
    limits.push(limit);
    startedAt.push(world.clock.monotonic());
    await world.clock.sleep(20);
    return limit;
  };
  await world.runFor(5_000);
  expect(limits.slice(0, 4)).toEqual([20, 10, 10, 10]);
  // Most of the time is left for delivery, later half of it.
  expect(startedAt[3]! - startedAt[2]!).toBe(100);
  await world.runFor(60_000);
  expect(limits.at(-1)).toBe(100);
  expect(startedAt.at(-1)! - startedAt.at(-2)!).toBe(40);
});

test("the store's preferred batch size for deletions is used", async () => {
  const { world, putQueue, store } = await newScene();
  Object.assign(store, { capabilities: { batchSizes: { claim: 500, deletion: 150 } } });
  await putQueue({ retention: { succeeded_ms: 5_000 } });
  const limits: number[] = [];
  store.deleteFinished = async ({ limit }) => {
    limits.push(limit);
    await world.clock.sleep(20);
    return limits.length < 4 ? limit : 0;
  };
  await world.runFor(5_000);
  expect(limits.slice(0, 4)).toEqual([150, 150, 150, 150]);
});
