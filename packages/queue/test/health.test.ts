import { request as httpRequest } from 'node:http';
import { expect, test } from 'vitest';
import { MemoryStore } from './support/memory-store/index.js';
import { StorageUnavailable } from '../src/storage/port/task-store.js';
import { idleDelivery } from './support/idle-delivery.js';
import { makeQueue, startTestServer } from './support/server.js';

class MoodyStore extends MemoryStore {
  probes = 0;
  isAway = false;

  override async probe() {
    this.probes++;
    if (this.isAway) throw new StorageUnavailable('ECONNREFUSED 10.9.8.7:5432');
  }
}

test('liveness never touches the store', async () => {
  const store = new MoodyStore();
  store.isAway = true;
  const server = await startTestServer({ store });
  const answer = await server.send({ path: '/healthz' });
  expect([answer.status, answer.body]).toEqual([200, { status: 'ok' }]);
  expect(store.probes).toBe(0);
});

test('readiness follows the store, with what it found kept for a second', async () => {
  const store = new MoodyStore();
  const server = await startTestServer({ store });
  let aheadMs = 0;
  const { monotonic } = server.clock;
  server.clock.monotonic = () => monotonic() + aheadMs;
  const ready = () => server.send({ path: '/readyz' });
  const good = { status: 'ready', checks: { storage: 'ok' } };
  const answers = await Promise.all(Array.from({ length: 20 }, ready));
  expect(answers.map(({ body }) => body)).toEqual(answers.map(() => good));
  expect(store.probes).toBe(1);
  store.isAway = true;
  aheadMs += 1_000;
  const away = await ready();
  expect(away.status).toBe(503);
  expect(away.headers['retry-after']).toBe('5');
  expect(away.headers['content-type']).toBe('application/problem+json');
  expect(away.body).toMatchObject({ code: 'STORAGE_UNAVAILABLE', status: 503 });
  // The endpoint needs no token, so it must not reveal the database address.
  expect(away.text).not.toContain('10.9.8.7');
  expect(server.log.lines.find(({ level }) => level === 'error')?.fields['reason']).toContain(
    '10.9.8.7',
  );
  store.isAway = false;
  expect((await ready()).status).toBe(503);
  aheadMs += 1_000;
  expect((await ready()).status).toBe(200);
  expect(server.differences).toEqual([]);
});

test('a store that says nothing at all is not ready either', async () => {
  class DumbStore extends MemoryStore {
    override probe() {
      return new Promise<void>(() => undefined);
    }
  }
  const server = await startTestServer({ store: new DumbStore() });
  server.clock.sleep = () => Promise.resolve();
  expect((await server.send({ path: '/readyz' })).status).toBe(503);
});

test('while it drains the server says so, serves on, and then lets go of its ports', async () => {
  let finish: () => void = () => undefined;
  const drained = new Promise<void>((resolve) => (finish = resolve));
  const server = await startTestServer({
    createDelivery: (parts) => ({ ...idleDelivery(parts), stop: () => drained }),
  });
  await makeQueue(server);
  expect((await server.send({ path: '/readyz' })).status).toBe(200);
  const stopped = server.running.stop();
  try {
    const answer = await server.send({ path: '/readyz' });
    expect(answer.status).toBe(503);
    expect(answer.body).toMatchObject({ code: 'STORAGE_UNAVAILABLE' });
    expect((await server.send({ path: '/healthz' })).status).toBe(200);
    expect((await server.as('root', { path: '/v1/queues/mail/stats' })).status).toBe(200);
  } finally {
    finish();
  }
  await stopped;
  await expect(server.send({ path: '/healthz' })).rejects.toThrow(
    /ECONNREFUSED|hang up|ECONNRESET/,
  );
  await expect(fetch(`${server.metricsUrl}/metrics`)).rejects.toThrow();
});

test('a request that is under way when the server stops gets its answer', async () => {
  let letGo: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (letGo = resolve));
  class SlowStore extends MemoryStore {
    isReached = false;

    override async counts(queue: string) {
      this.isReached = true;
      await held;
      return super.counts(queue);
    }
  }
  const store = new SlowStore();
  const server = await startTestServer({ store });
  await makeQueue(server);
  const request = server.as('root', { path: '/v1/queues/mail/stats' });
  await expect.poll(() => store.isReached).toBe(true);
  const stopped = server.running.stop();
  letGo();
  expect((await request).status).toBe(200);
  await stopped;
});

test('metrics have their own listener, and show an unavailable store', async () => {
  class AwayStore extends MemoryStore {
    override listQueues(): Promise<never> {
      return Promise.reject(new StorageUnavailable('away'));
    }
  }
  const server = await startTestServer({ store: new AwayStore() });
  const answer = await fetch(`${server.metricsUrl}/metrics`);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toContain('text/plain');
  expect(await answer.text()).toContain('millrace_queue_storage_up 0');
  expect((await server.as('root', { path: '/metrics' })).status).toBe(404);
  expect((await fetch(`${server.metricsUrl}/v1/admin/queues`)).status).toBe(404);
});

test('metrics on loopback: a foreign Host or Origin is refused', async () => {
  const server = await startTestServer();
  const statusWith = (headers: Record<string, string>) =>
    new Promise<number | undefined>((resolve, reject) => {
      const sent = httpRequest(`${server.metricsUrl}/metrics`, { headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      sent.on('error', reject).end();
    });
  expect(await statusWith({})).toBe(200);
  expect(await statusWith({ host: 'localhost:9464' })).toBe(200);
  expect(await statusWith({ host: 'rebound.example' })).toBe(403);
  expect(await statusWith({ origin: 'https://evil.example' })).toBe(403);
  expect(await statusWith({ 'sec-fetch-site': 'cross-site' })).toBe(403);
});

test('a queue that is gone is gone from the metrics', async () => {
  const server = await startTestServer();
  await makeQueue(server);
  const text = async () => (await fetch(`${server.metricsUrl}/metrics`)).text();
  expect(await text()).toContain('millrace_queue_queue_paused{queue="mail"} 0');
  await server.as('root', { method: 'DELETE', path: '/v1/admin/queues/mail' });
  expect(await text()).not.toContain('queue="mail"');
});
