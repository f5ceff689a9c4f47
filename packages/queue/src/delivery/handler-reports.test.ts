import { expect, test } from 'vitest';
import { answer, newScene, type Scene } from './delivery.test-support.js';
import type { QueueConfig } from '../core/queue.js';
import { StorageUnavailable } from '../storage/port/task-store.js';

type Callback = Partial<QueueConfig['callback']>;
type Retry = Partial<QueueConfig['retry']>;

/** A task whose handler continues asynchronously. */
async function handedOver(callback: Callback = {}, retry: Retry = {}) {
  const scene = await newScene();
  await scene.putQueue({ callback: { async_timeout_ms: 60_000, ...callback }, retry });
  scene.outbound.handler = () => answer(202, { 'x-queue-async': 'true' });
  const id = await scene.submit();
  await scene.world.settle();
  scene.outbound.handler = () => answer(200);
  return { ...scene, id, token: tokenOf(scene) };
}

function tokenOf({ outbound }: Scene): string {
  return outbound.requests.at(-1)!.headers!['X-Queue-Lease-Token']!;
}

test('202 with X-Queue-Async keeps the task in flight for async_timeout_ms', async () => {
  const { world, task, id, token } = await handedOver();
  expect(await task(id)).toMatchObject({
    status: 'IN_FLIGHT',
    lease: { token, isAsync: true, expiresAt: world.clock.now() + 60_000 },
  });
  await world.runFor(59_999);
  expect(await task(id)).toMatchObject({ status: 'IN_FLIGHT', attempt: 1 });
});

test('a hand-over that the store fails to take is tried again', async () => {
  const scene = await newScene();
  await scene.putQueue({ callback: { async_timeout_ms: 600_000 } });
  const { store, world } = scene;
  const { extendLease } = store;
  let failures = 3;
  store.extendLease = (change) =>
    failures-- > 0
      ? Promise.reject(new StorageUnavailable('away'))
      : extendLease.call(store, change);
  scene.outbound.handler = () => answer(202, { 'x-queue-async': 'true' });
  const id = await scene.submit();
  await world.runFor(1_000);
  expect((await scene.task(id)).lease).toMatchObject({ isAsync: true });
  expect((await scene.task(id)).lease!.expiresAt).toBeGreaterThan(world.clock.now() + 590_000);
});

test('a lease of long work that runs out counts as an attempt', async () => {
  const { world, task, id } = await handedOver({}, { max_attempts: 1 });
  await world.runFor(62_000);
  const dead = await task(id);
  expect(dead).toMatchObject({ status: 'DEAD', deadReason: 'ATTEMPTS_EXHAUSTED' });
  expect(dead.attempts[0]).toMatchObject({
    outcome: 'LEASE_EXPIRED',
    url: 'https://handlers.example.org/run',
  });
});

test('the lease of long work is async_timeout_ms, also when the callback had more', async () => {
  const scene = await newScene();
  await scene.putQueue({
    callback: { async_timeout_ms: 1_000, timeout_ms: 30_000 },
    retry: { max_attempts: 1 },
  });
  scene.outbound.handler = () => answer(202, { 'x-queue-async': 'true' });
  const id = await scene.submit();
  await scene.world.settle();
  expect((await scene.task(id)).lease!.expiresAt).toBe(scene.world.clock.now() + 1_000);
  await scene.world.runFor(4_000);
  expect(await scene.task(id)).toMatchObject({
    status: 'DEAD',
    attempts: [{ outcome: 'LEASE_EXPIRED' }],
  });
});

test('complete settles the task, and saying it again changes nothing', async () => {
  const { world, delivery, task, id, token } = await handedOver();
  await world.runFor(5_000);
  expect(await delivery.complete(id, token)).toMatchObject({ status: 'SUCCEEDED', attempt: 1 });
  await world.runFor(5_000);
  expect(await delivery.complete(id, token)).toMatchObject({ status: 'SUCCEEDED' });
  expect((await task(id)).attempts).toEqual([
    expect.objectContaining({ outcome: 'SUCCEEDED', httpStatus: 202, durationMs: 5_000 }),
  ]);
  expect(await delivery.fail(id, token, {})).toBe('lease_lost');
  expect(await delivery.extend(id, token, 1_000)).toBe('lease_lost');
});

test('fail retries by the policy and what it asks for, and can be repeated', async () => {
  const { world, delivery, task, id, token } = await handedOver();
  const now = world.clock.now();
  const report = { error_type: 'QUOTA_EXCEEDED', message: 'over quota', retry_after_ms: 60_000 };
  const failed = await delivery.fail(id, token, report);
  expect(failed).toMatchObject({
    status: 'PENDING',
    dueAt: now + 60_000,
    lastError: { errorType: 'QUOTA_EXCEEDED', message: 'over quota', httpStatus: null, at: now },
  });
  expect(await delivery.fail(id, token, report)).toMatchObject({ status: 'PENDING' });
  expect((await task(id)).attempts).toHaveLength(1);
  expect((await task(id)).attempts[0]).toMatchObject({ outcome: 'FAILED', retryAfterMs: 60_000 });
  expect(await delivery.complete(id, token)).toBe('lease_lost');
  await world.runFor(60_000);
  expect(await task(id)).toMatchObject({ status: 'SUCCEEDED', attempt: 2 });
  // The first claim's report again, long after another took its place.
  expect(await delivery.fail(id, token, report)).toBe('lease_lost');
});

test('fail without a word is an INTERNAL failure, and an hour is the most it can ask for', async () => {
  const { world, delivery, id, token } = await handedOver();
  const now = world.clock.now();
  expect(await delivery.fail(id, token, { retry_after_ms: 86_400_000 })).toMatchObject({
    dueAt: now + 3_600_000,
    lastError: { errorType: 'INTERNAL', message: '' },
  });
});

test('fail with retry: false ends the task', async () => {
  const { delivery, id, token } = await handedOver();
  const dead = { status: 'DEAD', deadReason: 'PERMANENT' };
  expect(await delivery.fail(id, token, { retry: false })).toMatchObject(dead);
  expect(await delivery.fail(id, token, { retry: false })).toMatchObject(dead);
});

test('fail with defer: true does not count, and can be repeated', async () => {
  const { world, delivery, id, token } = await handedOver({}, { max_attempts: 1 });
  const waits = { status: 'PENDING', attempt: 0, dueAt: world.clock.now() + 60_000 };
  const report = { error_type: 'RATE_LIMITED', defer: true, retry_after_ms: 60_000 };
  expect(await delivery.fail(id, token, report)).toMatchObject(waits);
  expect(await delivery.fail(id, token, report)).toMatchObject(waits);
  expect(await delivery.fail(id, token, {})).toBe('lease_lost');
});

test('the last attempt that reports a failure ends the task', async () => {
  const { delivery, id, token } = await handedOver({}, { max_attempts: 1 });
  expect(await delivery.fail(id, token, { message: 'm'.repeat(5_000) })).toMatchObject({
    status: 'DEAD',
    deadReason: 'ATTEMPTS_EXHAUSTED',
    lastError: { message: 'm'.repeat(1_024) },
  });
});

test('extend lets the lease run on and never shortens it', async () => {
  const { world, delivery, task, id, token } = await handedOver();
  const now = world.clock.now();
  expect(await delivery.extend(id, token, 10)).toMatchObject({
    lease: { expiresAt: now + 60_000 },
  });
  await world.runFor(50_000);
  expect(await delivery.extend(id, token, 90_000)).toMatchObject({
    status: 'IN_FLIGHT',
    lease: { expiresAt: now + 140_000, isAsync: true },
  });
  await world.runFor(85_000);
  expect(await task(id)).toMatchObject({ status: 'IN_FLIGHT', attempt: 1 });
  expect(await delivery.complete(id, token)).toMatchObject({ status: 'SUCCEEDED' });
});

test('a lease that is over is lost, also before anybody has cleared it away', async () => {
  const { world, delivery, store, task, id, token } = await handedOver();
  store.endedLeases = () => Promise.resolve([]);
  await world.runFor(60_000);
  expect(await task(id)).toMatchObject({ status: 'IN_FLIGHT' });
  expect(await delivery.complete(id, token)).toBe('lease_lost');
  expect(await delivery.fail(id, token, {})).toBe('lease_lost');
  expect(await delivery.extend(id, token, 1_000)).toBe('lease_lost');
  expect(await task(id)).toMatchObject({ status: 'IN_FLIGHT' });
});

test('a report after the lease ran out and the task waits for its retry is lost', async () => {
  const retry = { initial_backoff_ms: 600_000, max_backoff_ms: 600_000 };
  const { world, delivery, task, id, token } = await handedOver({}, retry);
  await world.runFor(65_000);
  expect(await task(id)).toMatchObject({ status: 'PENDING', attempt: 1 });
  expect(await delivery.fail(id, token, {})).toBe('lease_lost');
  expect(await delivery.complete(id, token)).toBe('lease_lost');
});

test('a wrong token settles nothing, and an unknown task is reported as such', async () => {
  const { delivery, task, id, world } = await handedOver();
  expect(await delivery.complete(id, 'made up')).toBe('lease_lost');
  expect(await delivery.fail(id, 'made up', {})).toBe('lease_lost');
  expect(await delivery.extend(id, 'made up', 5_000)).toBe('lease_lost');
  expect(await task(id)).toMatchObject({ status: 'IN_FLIGHT' });
  const unknown = world.random.ulid(world.clock.now());
  expect(await delivery.complete(unknown, 'x')).toBe('not_found');
  expect(await delivery.fail(unknown, 'x', {})).toBe('not_found');
  expect(await delivery.extend(unknown, 'x', 1)).toBe('not_found');
});

test('a report may arrive before the callback’s own answer', async () => {
  const scene = await newScene();
  await scene.putQueue();
  const { delivery, world } = scene;
  scene.outbound.handler = async (request) => {
    const token = request.headers!['X-Queue-Lease-Token']!;
    expect(await delivery.extend(id, token, 600_000)).toMatchObject({ status: 'IN_FLIGHT' });
    expect(await delivery.complete(id, token)).toMatchObject({ status: 'SUCCEEDED' });
    return answer(202, { 'x-queue-async': 'true' });
  };
  const id = await scene.submit();
  await world.settle();
  expect(await scene.task(id)).toMatchObject({ status: 'SUCCEEDED', totalAttempts: 1 });
  expect((await scene.task(id)).attempts).toHaveLength(1);
});

test('an extension during the callback outlives the hand-over, however slow it is', async () => {
  const scene = await newScene();
  await scene.putQueue({ callback: { async_timeout_ms: 60_000 } });
  const { delivery, world, store } = scene;
  const now = world.clock.now();
  const { extendLease } = store;
  let isFirst = true;
  store.extendLease = async (change) => {
    const delayMs = isFirst ? 20 : 0;
    isFirst = false;
    await world.clock.sleep(delayMs);
    return extendLease.call(store, change);
  };
  scene.outbound.handler = async (request) => {
    void delivery.extend(id, request.headers!['X-Queue-Lease-Token']!, 600_000);
    await world.clock.sleep(10);
    return answer(202, { 'x-queue-async': 'true' });
  };
  const id = await scene.submit();
  await world.runFor(100);
  expect((await scene.task(id)).lease).toMatchObject({ expiresAt: now + 600_000, isAsync: true });
});

test('asynchronous work takes up capacity until it is settled', async () => {
  const scene = await newScene();
  await scene.putQueue({ limits: { max_in_flight: 1 } });
  scene.outbound.handler = () => answer(202, { 'x-queue-async': 'true' });
  const first = await scene.submit();
  await scene.submit();
  await scene.world.runFor(1_000);
  expect(scene.outbound.requests).toHaveLength(1);
  await scene.delivery.complete(first, tokenOf(scene));
  await scene.world.settle();
  expect(scene.outbound.requests).toHaveLength(2);
});
