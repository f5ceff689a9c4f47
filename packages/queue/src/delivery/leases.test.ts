import { expect, test } from 'vitest';
import { answer, newScene, type Scene } from './delivery.test-support.js';

/** A claim of a server that has died since. */
async function claimByAnother({ store, world }: Scene, leaseMs: number): Promise<string> {
  const now = world.clock.now();
  const [task] = await store.claimDue({
    queue: 'mail',
    limit: 1,
    now,
    nodeId: 'node-0',
    leaseExpiresAt: now + leaseMs,
    newToken: () => 'token of another',
    maxInFlight: 10,
    dispatchPerSecond: 0,
    fifoGroups: false,
  });
  return task!.id;
}

async function withDeadServer(leaseMs: number, maxAttempts = 15) {
  const scene = await newScene({}, (store) => store);
  // Stopped so that the other server comes first.
  await scene.world.complete(scene.delivery.stop({ timeoutMs: 0 }));
  await scene.putQueue({ retry: { max_attempts: maxAttempts } });
  await scene.submit();
  const id = await claimByAnother(scene, leaseMs);
  const successor = await newScene({}, () => scene.store);
  return { ...successor, store: scene.store, task: scene.task, id };
}

test('the lease of a server that died is waited for, and its task goes on within five seconds', async () => {
  const { world, task, id, outbound } = await withDeadServer(45_000);
  await world.runFor(44_999);
  expect(await task(id)).toMatchObject({ status: 'IN_FLIGHT', lease: { nodeId: 'node-0' } });
  await world.runFor(5_000);
  expect(outbound.requests).toHaveLength(1);
  const done = await task(id);
  expect(done).toMatchObject({
    status: 'SUCCEEDED',
    attempt: 2,
    lastError: { errorType: 'LEASE_EXPIRED' },
  });
  expect(done.attempts[0]).toMatchObject({
    attempt: 1,
    outcome: 'LEASE_EXPIRED',
    errorType: 'LEASE_EXPIRED',
    nodeId: 'node-0',
    durationMs: 45_000,
    url: null,
  });
});

test('a lease that another server took later is found as well', async () => {
  const scene = await newScene();
  await scene.world.complete(scene.delivery.stop({ timeoutMs: 0 }));
  await scene.putQueue();
  const successor = await newScene({}, () => scene.store);
  await successor.world.runFor(5_500);
  const now = successor.world.clock.now();
  const { claimDue } = scene.store;
  scene.store.claimDue = () => Promise.resolve([]);
  const id = await scene.submit({ dueAt: now });
  await claimDue.call(scene.store, {
    queue: 'mail',
    limit: 1,
    now,
    nodeId: 'node-0',
    leaseExpiresAt: now + 1_000,
    newToken: () => 'token of another',
    maxInFlight: 10,
    dispatchPerSecond: 0,
    fifoGroups: false,
  });
  await successor.world.runFor(1_000 + 5_000);
  expect((await scene.task(id)).attempts[0]).toMatchObject({ outcome: 'LEASE_EXPIRED' });
});

test('a task whose leases keep running out ends in the DLQ', async () => {
  const { world, task, id, outbound } = await withDeadServer(1_000, 2);
  outbound.handler = () => answer(202, { 'x-queue-async': 'true' });
  await world.runFor(6_000);
  expect(await task(id)).toMatchObject({ status: 'IN_FLIGHT', attempt: 2 });
  await world.runFor(3_600_000);
  const dead = await task(id);
  expect(dead).toMatchObject({
    status: 'DEAD',
    deadReason: 'ATTEMPTS_EXHAUSTED',
    attempt: 2,
    lastError: { errorType: 'LEASE_EXPIRED' },
  });
  expect(dead.attempts.map((each) => each.outcome)).toEqual(['LEASE_EXPIRED', 'LEASE_EXPIRED']);
});

test('the lease is the time-out and the grace', async () => {
  const { world, putQueue, submit, task, outbound } = await newScene();
  await putQueue({ callback: { timeout_ms: 7_000 }, lease: { grace_ms: 400 } });
  outbound.handler = () => new Promise(() => {});
  const now = world.clock.now();
  const id = await submit();
  await world.settle();
  expect((await task(id)).lease).toMatchObject({ expiresAt: now + 7_400, isAsync: false });
  expect((await task(id)).lease!.token.length).toBeGreaterThanOrEqual(20);
});

test('an answer that comes after the lease settles nothing', async () => {
  const { world, putQueue, submit, task, outbound, metrics } = await newScene();
  await putQueue({
    callback: { timeout_ms: 10_000 },
    lease: { grace_ms: 1_000 },
    retry: { initial_backoff_ms: 100_000, max_backoff_ms: 100_000 },
  });
  outbound.handler = async () => {
    await world.clock.sleep(5_000);
    return answer(200);
  };
  const id = await submit();
  await world.runFor(1_000);
  // The clock is set forward: by the time of the answer the lease is over.
  world.jumpClock(60_000);
  await world.runFor(6_000);
  const { status, attempts } = await task(id);
  expect(status).toBe('PENDING');
  expect(attempts.map((each) => each.outcome)).toEqual(['LEASE_EXPIRED']);
  const text = await metrics.text();
  expect(text).toContain('millrace_queue_late_answers_total{queue="mail"} 1');
  expect(text).toContain('millrace_queue_lease_expiries_total{queue="mail"} 1');
  // Its place is free again.
  expect(text).toContain('millrace_queue_deliveries_in_flight{queue="mail"} 0');
});

/** A store whose claims take this long to return. */
async function withSlowClaims(delayMs: number) {
  const scene = await newScene();
  await scene.putQueue({ callback: { timeout_ms: 5_000 }, lease: { grace_ms: 1_000 } });
  const { store, world } = scene;
  const { claimDue } = store;
  store.claimDue = async (request) => {
    const tasks = await claimDue.call(store, request);
    await world.clock.sleep(delayMs);
    return tasks;
  };
  return scene;
}

test('a claim that took long leaves the callback less time, so that it ends with the lease', async () => {
  const { world, submit, outbound } = await withSlowClaims(2_500);
  await submit();
  await world.runFor(2_500);
  expect(outbound.requests[0]).toMatchObject({ timeoutMs: 3_500 });
});

test('a claim that took longer than its lease starts nothing', async () => {
  const { world, submit, task, outbound, metrics } = await withSlowClaims(6_000);
  const id = await submit();
  await world.runFor(6_000);
  expect(outbound.requests).toHaveLength(0);
  await world.runFor(500);
  expect((await task(id)).attempts[0]).toMatchObject({ outcome: 'LEASE_EXPIRED' });
  expect(await metrics.text()).toContain('millrace_queue_late_answers_total{queue="mail"} 1');
});

test('tasks expire while they wait, also in a paused queue', async () => {
  const { world, store, putQueue, submit, task, outbound } = await newScene();
  await putQueue();
  const now = world.clock.now();
  await store.setPaused({ queue: 'mail', paused: true, now, by: 'test' });
  const id = await submit({ expiresAt: now + 3_000 });
  await world.runFor(2_999);
  expect(await task(id)).toMatchObject({ status: 'PENDING' });
  await world.runFor(2_000);
  expect(await task(id)).toMatchObject({ status: 'DEAD', deadReason: 'EXPIRED', attempt: 0 });
  expect(outbound.requests).toHaveLength(0);
});

test('an expiry is kept to the moment when the server knows of it', async () => {
  const { world, putQueue, submit, task, delivery } = await newScene();
  await putQueue();
  const now = world.clock.now();
  const id = await submit({ dueAt: now + 60_000, expiresAt: now + 900 });
  delivery.workArrived('mail');
  await world.runFor(925);
  expect(await task(id)).toMatchObject({ status: 'DEAD', deadReason: 'EXPIRED' });
});
