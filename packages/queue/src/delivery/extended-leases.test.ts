import { expect, test } from 'vitest';
import type { MemoryStore } from '../../test/support/memory-store/index.js';
import { StorageUnavailable } from '../storage/port/task-store.js';
import { answer, newScene, type Scene } from './delivery.test-support.js';

const hourMs = 3_600_000;

function shared(store: MemoryStore): MemoryStore {
  return Object.defineProperty(store, 'capabilities', { value: { isShared: true } });
}

/** As `:extend` on another server does it: this one gets no notice. */
async function extendElsewhere({ store, world, task }: Scene, id: string): Promise<void> {
  const { lease } = await task(id);
  const now = world.clock.now();
  const change = { id, token: lease!.token, isAsync: false, now };
  await store.extendLease({ ...change, expiresAt: now + hourMs });
}

test('lease: a result is settled after the end of a lease that another server extended', async () => {
  const scene = await newScene({}, shared);
  await scene.putQueue({ callback: { timeout_ms: 1_000 }, lease: { grace_ms: 1_000 } });
  const settle = scene.store.settle.bind(scene.store);
  scene.store.settle = () => Promise.reject(new StorageUnavailable('away'));
  const id = await scene.submit();
  await scene.world.runFor(500);
  await extendElsewhere(scene, id);
  await scene.world.runFor(10_000);
  expect(await scene.task(id)).toMatchObject({ status: 'IN_FLIGHT' });
  scene.store.settle = settle;
  await scene.world.runFor(60_000);
  expect(await scene.task(id)).toMatchObject({ status: 'SUCCEEDED', attempt: 1 });
});

test('lease: a handler that continues on its own keeps what another server granted', async () => {
  const scene = await newScene({}, shared);
  await scene.putQueue({ callback: { async_timeout_ms: 5_000 } });
  const id = await scene.submit();
  scene.outbound.handler = async () => {
    await extendElsewhere(scene, id);
    return answer(202, { 'x-queue-async': 'true' });
  };
  await scene.world.runFor(30_000);
  const { status, lease } = await scene.task(id);
  expect([status, lease?.isAsync]).toEqual(['IN_FLIGHT', true]);
  expect(lease!.expiresAt - scene.world.clock.now()).toBeGreaterThan(hourMs - 60_000);
});

test.each([
  [true, 0],
  [false, 1],
])(
  'lease: a pulled task (shared store: %s) is reported as ended %i times',
  async (isShared, ends) => {
    const scene = await newScene({}, (store) => (isShared ? shared(store) : store));
    await scene.putQueue({ callback: { url: undefined, protocol: 'pull' } as never });
    const id = await scene.submit();
    const identity = { worker: 'w1', principal: 'mailers', remoteIp: null };
    const pull = { limit: 1, waitMs: 0, leaseMs: 2_000, ...identity };
    await scene.world.complete(scene.delivery.claim('mail', pull));
    const ended: string[] = [];
    scene.delivery.onPulledLeaseEnded((token) => ended.push(token));
    await extendElsewhere(scene, id);
    await scene.world.runFor(10_000);
    expect(ended).toHaveLength(ends);
    expect(await scene.task(id)).toMatchObject({ status: 'IN_FLIGHT' });
  },
);
