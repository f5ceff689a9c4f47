import { expect, test } from 'vitest';
import { answer, newScene, type Scene } from './delivery.test-support.js';

async function reason({ delivery, store, task }: Scene, id: string): Promise<string> {
  const found = await task(id);
  return delivery.waitingFor(found, (await store.getQueue(found.queue))!);
}

test('a task that is not due waits for time, even in a paused queue', async () => {
  const scene = await newScene();
  await scene.putQueue();
  const now = scene.world.clock.now();
  const id = await scene.submit({ dueAt: now + 5_000 });
  await scene.store.setPaused({ queue: 'mail', paused: true, now, by: 'test' });
  expect(await reason(scene, id)).toBe('time');
  await scene.world.runFor(5_000);
  expect(await reason(scene, id)).toBe('paused');
});

test('a task of a full queue waits for concurrency', async () => {
  const scene = await newScene();
  await scene.putQueue({ limits: { max_in_flight: 1 } });
  scene.outbound.handler = () => new Promise(() => {});
  await scene.submit();
  const id = await scene.submit();
  await scene.world.settle();
  expect(await reason(scene, id)).toBe('concurrency');
});

test('a task of a queue that has started enough waits for the rate limit', async () => {
  const scene = await newScene();
  await scene.putQueue({ limits: { dispatch_per_second: 1 } });
  await scene.submit();
  const id = await scene.submit();
  await scene.world.runFor(300);
  expect(await reason(scene, id)).toBe('rate_limit');
  await scene.world.runFor(300);
  expect(await reason(scene, id)).toBe('rate_limit');
});

test('a task behind another of its FIFO group waits for the group', async () => {
  const scene = await newScene();
  await scene.putQueue({ ordering: { mode: 'group' }, retry: { initial_backoff_ms: 60_000 } });
  scene.outbound.handler = () => answer(500);
  const first = await scene.submit({ groupKey: 'acme' });
  const second = await scene.submit({ groupKey: 'acme' });
  await scene.world.runFor(1_000);
  expect(await reason(scene, first)).toBe('time');
  expect(await reason(scene, second)).toBe('group');
});

test('a task that nothing blocks waits for dispatch', async () => {
  const scene = await newScene();
  await scene.world.complete(scene.delivery.stop({ timeoutMs: 0 }));
  await scene.putQueue({ ordering: { mode: 'group' } });
  expect(await reason(scene, await scene.submit({ groupKey: 'acme' }))).toBe('dispatch');
  expect(await reason(scene, await scene.submit())).toBe('dispatch');
});
