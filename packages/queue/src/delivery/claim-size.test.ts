import { expect, test } from 'vitest';
import { newScene } from './delivery.test-support.js';
import type { PulledTask } from './waiting-claims.js';

const pullCallback = { url: undefined, protocol: 'pull' } as never;

/** A pull queue with this many tasks of this size; `claim` returns how many it got. */
async function pullScene(count: number, payloadBytes: number) {
  const scene = await newScene();
  await scene.putQueue({ callback: pullCallback, limits: { max_in_flight: 1_000 } });
  const payload = new Uint8Array(payloadBytes);
  for (let i = 0; i < count; i++) await scene.submit({ payload });
  const request = { limit: 100, waitMs: 0, leaseMs: 30_000, worker: 'w1', principal: 'p' };
  return async () => {
    let tasks: readonly PulledTask[] = [];
    void scene.delivery.claim('mail', { ...request, remoteIp: null }).then((got) => (tasks = got));
    await scene.world.runFor(100);
    return tasks.length;
  };
}

test('claim: the first one takes its whole limit of small tasks', async () => {
  const claim = await pullScene(250, 100);
  expect([await claim(), await claim(), await claim()]).toEqual([100, 100, 50]);
});

test('claim: takes fewer large tasks than its limit', async () => {
  const claim = await pullScene(80, 2 ** 20);
  expect([await claim(), await claim(), await claim()]).toEqual([32, 16, 16]);
});
