import { expect, test } from 'vitest';
import { StorageUnavailable } from '../storage/port/task-store.js';
import type { MemoryStore } from '../../test/support/memory-store/index.js';
import { newScene } from './delivery.test-support.js';

const inOrder = (store: MemoryStore, claimsFollowSettlements: boolean) =>
  Object.assign(store, { capabilities: { claimsFollowSettlements } });

test.each([
  { keepsOrder: true, started: 3 },
  { keepsOrder: false, started: 1 },
])(
  'capacity is free during a settlement only if later claims run after it: $keepsOrder',
  async ({ keepsOrder, started }) => {
    const scene = await newScene({}, (store) => inOrder(store, keepsOrder));
    const { world, store, outbound, delivery } = scene;
    const { settle } = store;
    store.settle = async (all) => {
      const results = await settle.call(store, all);
      await world.clock.sleep(100);
      return results;
    };
    await scene.putQueue({ limits: { max_in_flight: 1 } });
    for (let i = 0; i < 3; i++) await scene.submit();
    await world.runFor(50);
    expect(outbound.requests).toHaveLength(started);
    let hasStopped = false;
    void delivery.stop({ timeoutMs: 10_000 }).then(() => (hasStopped = true));
    await world.runFor(40);
    // A shutdown waits for what is not settled yet, places or not.
    expect(hasStopped).toBe(false);
    await world.runFor(20);
    expect(hasStopped).toBe(true);
  },
);

test('capacity of a failed settlement is used as soon as a retry succeeds', async () => {
  let dropsHints = false;
  const scene = await newScene({}, (store) => {
    const { onWork } = store;
    store.onWork = (listener) =>
      onWork.call(store, (queue) => void (dropsHints || listener(queue)));
    return inOrder(store, true);
  });
  const { world, store, outbound } = scene;
  const { settle } = store;
  let failures = 1;
  store.settle = (all) => {
    dropsHints = true;
    if (failures-- > 0) return Promise.reject(new StorageUnavailable('down'));
    return settle.call(store, all);
  };
  await scene.putQueue({ limits: { max_in_flight: 1 } });
  await scene.submit();
  await scene.submit();
  await world.runFor(20);
  expect(outbound.requests).toHaveLength(1);
  // Well before the next full scan.
  await world.runFor(500);
  expect(outbound.requests).toHaveLength(2);
});
