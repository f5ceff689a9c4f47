import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from '@millrace/db';
import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { createMetrics } from '@millrace/kit/metrics';
import { seededRandom } from '@millrace/kit/random';
import { expect, test } from 'vitest';
import { FakeOutbound, sampleConfig, sampleTask } from '../src/delivery/delivery.test-support.js';
import { createDelivery } from '../src/delivery/index.js';
import { EmbeddedStore } from '../src/storage/embedded/embedded-store.js';

test('a task that meets an idle queue is accepted, delivered and settled in two commits', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'millrace-queue-'));
  const world = { clock: systemClock, random: seededRandom(5), log: silentLog };
  const database = await open(directory, world);
  const store = new EmbeddedStore(database, world.random);
  const outbound = new FakeOutbound(world as never);
  const metrics = createMetrics('queue');
  metrics.close();
  const delivery = createDelivery({
    ...world,
    store,
    outbound,
    metrics,
    secretsOf: () => undefined,
    isAllowed: () => true,
    nodeId: 'node-1',
  });
  const now = () => world.clock.now();
  await store.putQueue({ queue: 'mail', config: sampleConfig(), now: now(), by: 'test' });
  await delivery.start();
  const { stats } = database.core;
  const before = stats.batches;
  const tasks = 20;
  for (let i = 0; i < tasks; i++) {
    const id = world.random.ulid(now());
    await store.insertTasks([sampleTask(id, now())], now());
    await expect
      .poll(async () => (await store.getTask(id)) ?? {}, { interval: 2, timeout: 20_000 })
      .toMatchObject({ status: 'SUCCEEDED' });
  }
  await delivery.stop({ timeoutMs: 20_000 });
  expect(stats.batches - before).toBe(2 * tasks);
  await store.close();
  rmSync(directory, { recursive: true, force: true });
});
