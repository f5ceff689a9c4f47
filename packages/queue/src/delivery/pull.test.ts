import { expect, test } from 'vitest';
import type { QueueConfig } from '../core/queue.js';
import { newScene, type Scene } from './delivery.test-support.js';
import type { TaskReport } from './handler-reports.js';
import type { PullRequest, PulledTask } from './waiting-claims.js';

const pullCallback = { url: undefined, protocol: 'pull' } as never;

async function pullScene(parts: Parameters<Scene['putQueue']>[0] = {}): Promise<Scene> {
  const scene = await newScene();
  await scene.putQueue({ callback: pullCallback, ...parts });
  return scene;
}

/** Starts a claim; `ids` is undefined while it waits. */
function claim({ delivery }: Scene, over: Partial<PullRequest> = {}) {
  const request = { limit: 10, waitMs: 0, leaseMs: 30_000, ...identity, ...over };
  const seen: { tasks?: readonly PulledTask[]; ids?: string[] } = {};
  void delivery.claim('mail', request).then((tasks) => {
    seen.tasks = tasks;
    seen.ids = tasks.map(({ id }) => id);
  });
  return seen;
}

const identity = { worker: 'w1', principal: 'mailers', remoteIp: '192.0.2.7' };
const waitMs = 20_000;

async function settleAll({ store, delivery }: Scene, reports: readonly TaskReport[]) {
  return delivery.settleAll((await store.getQueue('mail'))!, reports);
}

test('claim: takes due tasks in order, and none is called', async () => {
  const scene = await pullScene();
  const low = await scene.submit({ priority: 1 });
  const high = await scene.submit({ priority: 8 });
  const got = claim(scene);
  await scene.world.runFor(1);
  expect(got.ids).toEqual([high, low]);
  expect(got.tasks![0]!.lease.expiresAt).toBe(scene.world.clock.now() - 1 + 30_000);
  expect(scene.outbound.requests).toEqual([]);
  const again = claim(scene);
  await scene.world.runFor(1);
  expect(again.ids).toEqual([]);
});

test('claim: a submit wakes a waiting claim at once', async () => {
  const scene = await pullScene();
  const got = claim(scene, { waitMs });
  await scene.world.runFor(10_000);
  expect(got.ids).toBeUndefined();
  const id = await scene.submit();
  await scene.world.runFor(1);
  expect(got.ids).toEqual([id]);
});

test('claim: a delayed task wakes a waiting claim when it falls due', async () => {
  const scene = await pullScene();
  const got = claim(scene, { waitMs });
  const id = await scene.submit({ dueAt: scene.world.clock.now() + 5_000 });
  await scene.world.runFor(4_990);
  expect(got.ids).toBeUndefined();
  await scene.world.runFor(20);
  expect(got.ids).toEqual([id]);
});

test('claim: ends empty when the wait is over', async () => {
  const scene = await pullScene();
  const got = claim(scene, { waitMs });
  await scene.world.runFor(waitMs - 1);
  expect(got.ids).toBeUndefined();
  await scene.world.runFor(1);
  expect(got.ids).toEqual([]);
});

test('claim: several waiting claims share what arrives, first come first served', async () => {
  const scene = await pullScene();
  const first = claim(scene, { waitMs, limit: 1 });
  const second = claim(scene, { waitMs, limit: 1, worker: 'w2' });
  await scene.world.runFor(10);
  const a = await scene.submit();
  await scene.world.runFor(1);
  expect([first.ids, second.ids]).toEqual([[a], undefined]);
  const b = await scene.submit();
  await scene.world.runFor(1);
  expect(second.ids).toEqual([b]);
});

test('claim: waits for its own handlers only', async () => {
  const scene = await pullScene();
  const other = claim(scene, { waitMs, handlers: ['other'] });
  const any = claim(scene, { waitMs, handlers: ['mail.send', 'x'] });
  await scene.world.runFor(10);
  const id = await scene.submit();
  await scene.world.runFor(1);
  expect([other.ids, any.ids]).toEqual([undefined, [id]]);
  const forOther = await scene.submit({ handlerRef: 'other' });
  await scene.world.runFor(1);
  expect(other.ids).toEqual([forOther]);
});

test('claim: takes no more than max_in_flight until a task is settled', async () => {
  const scene = await pullScene({ limits: { max_in_flight: 2 } });
  for (let i = 0; i < 3; i++) await scene.submit();
  const got = claim(scene);
  await scene.world.runFor(1);
  expect(got.ids).toHaveLength(2);
  const next = claim(scene, { waitMs });
  await scene.world.runFor(5_000);
  expect(next.ids).toBeUndefined();
  const { id, lease } = got.tasks![0]!;
  await scene.world.complete(scene.delivery.complete(id, lease.token));
  await scene.world.runFor(1);
  expect(next.ids).toHaveLength(1);
});

test('claim: keeps to dispatch_per_second', async () => {
  const scene = await pullScene({ limits: { dispatch_per_second: 2 } });
  for (let i = 0; i < 4; i++) await scene.submit();
  const got = claim(scene);
  await scene.world.runFor(1);
  expect(got.ids).toHaveLength(2);
  const next = claim(scene, { waitMs });
  await scene.world.runFor(900);
  expect(next.ids).toBeUndefined();
  await scene.world.runFor(200);
  expect(next.ids).toHaveLength(2);
});

test('claim: waits while the queue is paused', async () => {
  const scene = await pullScene();
  const pause = (paused: boolean) => {
    const change = { queue: 'mail', paused, now: scene.world.clock.now(), by: 'ada' };
    return scene.store.setPaused(change).then(() => scene.delivery.queueChanged('mail'));
  };
  await pause(true);
  const id = await scene.submit();
  const [now, later] = [claim(scene), claim(scene, { waitMs })];
  await scene.world.runFor(5_000);
  expect([now.ids, later.ids]).toEqual([[], undefined]);
  await pause(false);
  await scene.world.runFor(1);
  expect(later.ids).toEqual([id]);
});

test('claim: an open circuit breaker hands out nothing', async () => {
  const scene = await pullScene({ circuit_breaker: { min_requests: 2, open_ms: 5_000 } });
  for (let i = 0; i < 3; i++) await scene.submit();
  const got = claim(scene, { limit: 2 });
  await scene.world.runFor(1);
  for (const { id, lease } of got.tasks!) {
    await scene.world.complete(scene.delivery.fail(id, lease.token, { message: 'down' }));
  }
  expect(await scene.delivery.breakersOf('mail')).toMatchObject({
    phase: 'open',
    handlers: [{ phase: 'open', nextProbeAt: scene.world.clock.now() + 5_000 }],
  });
  const [now, later] = [claim(scene), claim(scene, { waitMs })];
  await scene.world.runFor(4_000);
  expect([now.ids, later.ids]).toEqual([[], undefined]);
  await scene.world.runFor(1_100);
  expect(later.ids!.length).toBeGreaterThan(0);
});

test('claim: a client that disconnects gets nothing, and its place goes to the next', async () => {
  const scene = await pullScene();
  const abort = new AbortController();
  const gone = claim(scene, { waitMs, signal: abort.signal });
  const next = claim(scene, { waitMs, worker: 'w2' });
  await scene.world.runFor(10);
  abort.abort();
  const id = await scene.submit();
  await scene.world.runFor(1);
  expect([gone.ids, next.ids]).toEqual([[], [id]]);
  expect(await scene.task(id)).toMatchObject({ attempt: 1, attempts: [] });
});

test('claim: ends empty at shutdown, and later claims too', async () => {
  const scene = await pullScene();
  const waiting = claim(scene, { waitMs });
  await scene.world.runFor(10);
  await scene.world.complete(scene.delivery.stop({ timeoutMs: 1_000 }));
  expect(waiting.ids).toEqual([]);
  await scene.submit();
  const late = claim(scene, { waitMs });
  await scene.world.runFor(1);
  expect(late.ids).toEqual([]);
});

test('lease: an expired lease counts as an attempt and cannot complete the task', async () => {
  const scene = await pullScene({ retry: { max_attempts: 1 } });
  const id = await scene.submit();
  const got = claim(scene, { leaseMs: 1_000 });
  await scene.world.runFor(1);
  const { token } = got.tasks![0]!.lease;
  await scene.world.runFor(1_100);
  expect(await scene.world.complete(scene.delivery.complete(id, token))).toBe('lease_lost');
  expect(await scene.task(id)).toMatchObject({
    status: 'DEAD',
    deadReason: 'ATTEMPTS_EXHAUSTED',
    attempts: [{ outcome: 'LEASE_EXPIRED', url: null }],
  });
});

test('lease: an extended lease can complete the task, and repeating that is fine', async () => {
  const scene = await pullScene();
  const id = await scene.submit();
  const got = claim(scene, { leaseMs: 1_000 });
  await scene.world.runFor(1);
  const { token } = got.tasks![0]!.lease;
  await scene.world.complete(scene.delivery.extend(id, token, 10_000));
  await scene.world.runFor(5_000);
  for (let i = 0; i < 2; i++) {
    const done = await scene.world.complete(scene.delivery.complete(id, token));
    expect(done).toMatchObject({ id, status: 'SUCCEEDED' });
  }
  expect(await scene.task(id)).toMatchObject({ attempts: [{ outcome: 'SUCCEEDED', url: null }] });
});

test('workers: are listed with what they did', async () => {
  const scene = await pullScene();
  for (let i = 0; i < 4; i++) await scene.submit();
  const got = claim(scene, { leaseMs: 5_000 });
  await scene.world.runFor(1);
  const [a, b, c] = got.tasks!.map(({ id, lease }) => ({ id, token: lease.token }));
  const failure = { retry: false };
  const results = await scene.world.complete(
    settleAll(scene, [
      { ...a!, outcome: 'complete' },
      { ...b!, outcome: 'fail', failure },
      { ...c!, token: 'stale', outcome: 'complete' },
    ]),
  );
  expect(results.map((each) => (typeof each === 'string' ? each : each.status))).toEqual([
    'SUCCEEDED',
    'DEAD',
    'lease_lost',
  ]);
  const list = () => scene.world.complete(scene.delivery.workers('mail'));
  const counts = { claimed: 4, completed: 1, failed: 1, inFlight: 2 };
  expect(await list()).toMatchObject([{ ...identity, ...counts }]);
  await scene.world.runFor(6_000);
  expect(await list()).toMatchObject([{ failed: 3, inFlight: 0 }]);
  await scene.world.runFor(600_000);
  expect(await list()).toEqual([]);
});

test('settleAll: does not touch a task of another queue', async () => {
  const scene = await pullScene();
  const id = await scene.submit();
  const got = claim(scene);
  await scene.world.runFor(1);
  const { token } = got.tasks![0]!.lease;
  const reports = [{ id, token, outcome: 'complete' as const }];
  const other = { ...(await scene.store.getQueue('mail'))!, name: 'other' };
  expect(await scene.world.complete(scene.delivery.settleAll(other, reports))).toEqual([
    'not_found',
  ]);
  expect(await scene.task(id)).toMatchObject({ status: 'IN_FLIGHT' });
});

test('settleAll: is one call of the store, and a repeated item gets the same result', async () => {
  const scene = await pullScene();
  for (let i = 0; i < 3; i++) await scene.submit();
  const got = claim(scene);
  await scene.world.runFor(1);
  const sizes: number[] = [];
  const real = scene.store.settle.bind(scene.store);
  scene.store.settle = (settlements) => {
    sizes.push(settlements.length);
    return real(settlements);
  };
  const reports = got.tasks!.map(({ id, lease }) => {
    return { id, token: lease.token, outcome: 'complete' as const };
  });
  const all = [...reports, reports[0]!];
  const results = await scene.world.complete(settleAll(scene, all));
  expect(results.map((each) => typeof each === 'object' && each.id)).toEqual(
    all.map(({ id }) => id),
  );
  expect(sizes).toEqual([4]);
});

test('settleAll: one settlement that the store rejects does not block the others', async () => {
  const scene = await pullScene();
  for (let i = 0; i < 3; i++) await scene.submit();
  const got = claim(scene);
  await scene.world.runFor(1);
  const [bad, ...good] = got.tasks!.map(({ id }) => id);
  const real = scene.store.settle.bind(scene.store);
  scene.store.settle = async (settlements) => {
    if (settlements.some(({ id }) => id === bad)) throw new Error('planted');
    return real(settlements);
  };
  const reports = got.tasks!.map(({ id, lease }) => {
    return { id, token: lease.token, outcome: 'complete' as const };
  });
  const settled = settleAll(scene, reports);
  await scene.world.complete(expect(settled).rejects.toThrow('planted'));
  for (const id of good) expect(await scene.task(id)).toMatchObject({ status: 'SUCCEEDED' });
  expect(await scene.task(bad!)).toMatchObject({ status: 'IN_FLIGHT' });
});

/** As another server on the same database would. */
async function configureElsewhere({ store, world }: Scene, change: Partial<QueueConfig>) {
  const { config } = (await store.getQueue('mail'))!;
  const now = world.clock.now();
  await store.putQueue({ queue: 'mail', config: { ...config, ...change }, now, by: 'ada' });
}

test('claim: follows a config that another server wrote, also without waiting', async () => {
  const scene = await pullScene();
  const first = await scene.submit();
  const before = claim(scene);
  await scene.world.runFor(1);
  expect(before.ids).toEqual([first]);
  const second = await scene.submit();
  const third = await scene.submit();
  const { limits } = (await scene.store.getQueue('mail'))!.config;
  await configureElsewhere(scene, { limits: { ...limits, max_in_flight: 2 } });
  const limited = claim(scene);
  await scene.world.runFor(1);
  expect(limited.ids).toEqual([second]);
  await configureElsewhere(scene, { limits });
  const unlimited = claim(scene, { waitMs });
  await scene.world.runFor(5_000);
  expect(unlimited.ids).toEqual([third]);
});

test('claim: ends when another server paused the queue, and goes on when it resumed', async () => {
  const scene = await pullScene();
  const before = claim(scene);
  await scene.world.runFor(1);
  expect(before.ids).toEqual([]);
  const pause = (paused: boolean) =>
    scene.store.setPaused({ queue: 'mail', paused, now: scene.world.clock.now(), by: 'ada' });
  await pause(true);
  const id = await scene.submit();
  const paused = claim(scene);
  await scene.world.runFor(1);
  expect(paused.ids).toEqual([]);
  await pause(false);
  const resumed = claim(scene);
  await scene.world.runFor(1);
  expect(resumed.ids).toEqual([id]);
});

test('claim: reads the queue once for many claims', async () => {
  const scene = await pullScene();
  let reads = 0;
  const real = scene.store.getQueue.bind(scene.store);
  scene.store.getQueue = (name) => {
    reads++;
    return real(name);
  };
  for (let i = 0; i < 10; i++) {
    const id = await scene.submit();
    const got = claim(scene);
    await scene.world.runFor(1);
    expect(got.ids).toEqual([id]);
  }
  expect(reads).toBeLessThan(2);
});

/** How often the store was called to claim. */
function countClaims({ store }: Scene): () => number {
  let calls = 0;
  const real = store.claimDue.bind(store);
  store.claimDue = (request) => {
    calls++;
    return real(request);
  };
  return () => calls;
}

test('settleAll: a waiting claim reads the store once after it', async () => {
  const scene = await pullScene();
  const id = await scene.submit();
  const got = claim(scene);
  await scene.world.runFor(1);
  claim(scene, { waitMs });
  await scene.world.runFor(1);
  const calls = countClaims(scene);
  const { token } = got.tasks![0]!.lease;
  const reports = [{ id, token, outcome: 'complete' as const }];
  await scene.world.complete(settleAll(scene, reports));
  await scene.world.runFor(100);
  expect(calls()).toBe(1);
});

test('idle: waiting claims do not poll the store', async () => {
  const scene = await pullScene();
  const calls = countClaims(scene);
  const claims = Array.from({ length: 1_000 }, (_, i) =>
    claim(scene, { waitMs: 30_000, worker: `w${i}` }),
  );
  await scene.world.runFor(29_000);
  expect(calls()).toBeLessThan(10);
  await scene.submit();
  await scene.world.runFor(1);
  expect(claims.filter(({ ids }) => ids !== undefined)).toHaveLength(1);
});
