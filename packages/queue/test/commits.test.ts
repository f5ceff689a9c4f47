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
import { never } from '../src/core/flow.js';
import { attemptRecord } from '../src/core/outcome.js';
import type { WholeTask } from '../src/core/task.js';
import { createDelivery } from '../src/delivery/index.js';
import { claimRequest } from '../src/delivery/queue-state.js';
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
        .poll(async () => (await store.getTask(id)) ?? {}, { interval: 2, timeout: 60_000 })
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

test('commits: the end of a child, the wait of its parent and the next claim share one', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'millrace-queue-'));
  const random = seededRandom(6);
  const database = await open(directory, { clock: systemClock, random, log: silentLog });
  const store = new EmbeddedStore(database, random);
  const now = systemClock.now();
  await store.putQueue({ queue: 'mail', config: sampleConfig(), now, by: 'test' });
  const expected = (await store.getQueue('mail'))!;
  const claim = () =>
    store.claimDue({
      ...claimRequest(expected, {
        limit: 9,
        now,
        nodeId: 'node-1',
        leaseMs: 60_000,
        newToken: () => random.ulid(now),
      }),
      labels: [],
    });
  const [parentId, childId] = [random.ulid(now), random.ulid(now)];
  await store.insertTasks([sampleTask(parentId, now)], now);
  const [parent] = await claim();
  const flow = { parentId };
  await store.insertTasks([{ ...sampleTask(childId, now), flow }], now);
  const [child] = await claim();
  const settlement = ({ id, lease }: WholeTask) => {
    const { token, startedAt } = lease!;
    const attempt = attemptRecord(
      { ...sampleTask(id, now), attempt: 1, redriveCount: 0, lease: lease! } as never,
      { outcome: 'SUCCEEDED', now: startedAt },
    );
    return { id, token, now, attempt };
  };
  const claims: Promise<WholeTask[]>[] = [];
  store.onWork(() => void claims.push(claim()));
  const before = database.core.stats.batches;
  await store.settle([
    {
      ...settlement(parent!),
      verdict: { kind: 'suspended', dueAt: never, flow: {} },
      suspension: { tasks: [childId], mode: 'any' },
    },
    { ...settlement(child!), verdict: { kind: 'succeeded' } },
  ]);
  const woken = (await Promise.all(claims)).flat();
  expect(woken).toMatchObject([{ id: parentId, flow: { wokenBy: { kind: 'task', id: childId } } }]);
  expect(database.core.stats.batches - before).toBe(1);
  await store.close();
  rmSync(directory, { recursive: true, force: true });
});
