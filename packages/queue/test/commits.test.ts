import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from '@millrace/engine';
import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { createMetrics } from '@millrace/kit/metrics';
import { seededRandom } from '@millrace/kit/random';
import { expect, test } from 'vitest';
import {
  FakeOutbound,
  newObserver,
  sampleConfig,
  sampleTask,
} from '../src/delivery/delivery.test-support.js';
import { createDelivery } from '../src/delivery/index.js';
import { EmbeddedStore } from '../src/storage/embedded/embedded-store.js';

async function openDelivery(maxInFlight = 64) {
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
    observer: newObserver(store, world.clock),
    outbound,
    metrics,
    findSecret: () => undefined,
    isAllowed: () => true,
    nodeId: 'node-1',
  });
  const now = () => world.clock.now();
  const config = sampleConfig({ limits: { max_in_flight: maxInFlight } });
  await store.putQueue({ queue: 'mail', config, now: now(), by: 'test' });
  await delivery.start();
  const { stats } = database.core;
  const before = stats.batches;
  const submit = async (count: number) => {
    const ids = Array.from({ length: count }, () => world.random.ulid(now()));
    await store.insertTasks(
      ids.map((id) => sampleTask(id, now())),
      now(),
    );
    for (const id of ids) {
      await expect
        .poll(async () => (await store.getTask(id)) ?? {}, { interval: 2, timeout: 20_000 })
        .toMatchObject({ status: 'SUCCEEDED' });
    }
  };
  const countCommits = async () => {
    await delivery.stop({ timeoutMs: 20_000 });
    await store.close();
    rmSync(directory, { recursive: true, force: true });
    return stats.batches - before;
  };
  return { submit, countCommits };
}

const tasks = 20;

test('commits: a task of an idle queue needs at most three', async () => {
  const { submit, countCommits } = await openDelivery();
  for (let i = 0; i < tasks; i++) await submit(1);
  // The claim mostly shares the commit of the insert; on a busy machine it may not.
  expect(await countCommits()).toBeLessThanOrEqual(3 * tasks);
});

test('commits: a task of a queue that runs one at a time needs at most two', async () => {
  const { submit, countCommits } = await openDelivery(1);
  await submit(tasks);
  // One inserts them all; the claim of the next mostly shares the commit of the settlement.
  expect(await countCommits()).toBeLessThanOrEqual(2 * tasks + 1);
});
