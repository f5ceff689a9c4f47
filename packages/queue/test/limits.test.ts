import { describe, expect, test } from 'vitest';
import { MemoryStore } from './support/memory-store/index.js';
import { makeQueue, startTestServer, type TestServer } from './support/server.js';

const submit = (
  server: TestServer,
  body: unknown = { handler_ref: 'a' },
  who: 'root' | 'submitter' = 'submitter',
) => server.as(who, { method: 'POST', path: '/v1/queues/mail/tasks', body });
const batch = async (server: TestServer, body: unknown) => {
  const answer = await server.as('submitter', {
    method: 'POST',
    path: '/v1/queues/mail/tasks:batch',
    body,
  });
  return (answer.body as unknown as { status: number }[]).map(({ status }) => status);
};
const tasks = (count: number) => Array.from({ length: count }, () => ({ handler_ref: 'a' }));
const known = '01JD3Z8Q4M7X2N5V9RTBKWCH6E';

/** Holds the time of the limits still, until it is put forward. */
function stillClock(server: TestServer) {
  const time = { now: server.clock.monotonic() };
  server.clock.monotonic = () => time.now;
  return time;
}

describe('submit_per_second', () => {
  test('takes a second of tasks at once and refuses more, with the time to come back', async () => {
    const server = await startTestServer();
    const time = stillClock(server);
    await makeQueue(server, 'mail', { limits: { submit_per_second: 2 } });
    expect((await submit(server)).status).toBe(202);
    expect((await submit(server)).status).toBe(202);
    const { status, body, headers } = await submit(server);
    expect([status, body['code']]).toEqual([429, 'RATE_LIMITED']);
    expect(headers).toMatchObject({
      'retry-after': '1',
      ratelimit: '"queue";r=0;t=1',
      'ratelimit-policy': '"queue";q=2;w=1',
    });
    time.now += 500;
    expect((await submit(server)).status).toBe(202);
    expect((await submit(server)).status).toBe(429);
    expect(server.differences).toEqual([]);
  });

  test('may be less than one', async () => {
    const server = await startTestServer();
    stillClock(server);
    await makeQueue(server, 'mail', { limits: { submit_per_second: 0.1 } });
    expect((await submit(server)).status).toBe(202);
    expect((await submit(server)).headers).toMatchObject({
      'retry-after': '10',
      'ratelimit-policy': '"queue";q=1;w=10',
    });
  });

  test('returns an existing task, and distinguishes a conflict from a limit', async () => {
    const server = await startTestServer();
    stillClock(server);
    await makeQueue(server, 'mail', { limits: { submit_per_second: 1 } });
    await makeQueue(server, 'other');
    const foreign = await server.as('root', {
      method: 'POST',
      path: '/v1/queues/other/tasks',
      body: { handler_ref: 'a' },
    });
    expect((await submit(server, { id: known, handler_ref: 'a' })).status).toBe(202);
    expect((await submit(server)).status).toBe(429);
    const again = await submit(server, { id: known, handler_ref: 'a' });
    expect([again.status, again.headers['idempotent-replayed']]).toEqual([202, 'true']);
    const conflict = await submit(server, { id: foreign.body['id'], handler_ref: 'a' });
    expect(conflict.body['code']).toBe('ID_CONFLICT');
    const mixed = [{ handler_ref: 'a' }, { id: known, handler_ref: 'a' }, { handler_ref: '' }];
    expect(await batch(server, mixed)).toEqual([429, 202, 422]);
  });

  test('takes the first of a batch, and bad ones do not count', async () => {
    const server = await startTestServer();
    stillClock(server);
    await makeQueue(server, 'mail', { limits: { submit_per_second: 3 } });
    expect(await batch(server, [{ handler_ref: '' }, ...tasks(5)])).toEqual([
      422, 202, 202, 202, 429, 429,
    ]);
    const { body } = await server.as('root', { path: '/v1/queues/mail/stats' });
    expect(body['pending']).toBe(3);
  });

  test('is read again with every submit', async () => {
    const server = await startTestServer();
    stillClock(server);
    await makeQueue(server, 'mail', { limits: { submit_per_second: 1 } });
    await submit(server);
    expect((await submit(server)).status).toBe(429);
    await makeQueue(server, 'mail');
    expect((await submit(server)).status).toBe(202);
  });
});

test('each principal has a limit of its own, if the server sets one', async () => {
  const server = await startTestServer({ settings: { principal_submit_per_second: 1 } });
  stillClock(server);
  await makeQueue(server);
  expect((await submit(server)).status).toBe(202);
  const refused = await submit(server);
  expect(refused.status).toBe(429);
  expect(refused.headers['ratelimit']).toBe('"principal";r=0;t=1');
  expect((await submit(server, undefined, 'root')).status).toBe(202);
});

test('no more than max_pending tasks wait', async () => {
  const server = await startTestServer();
  await makeQueue(server, 'mail', { limits: { max_pending: 2 } });
  expect(await batch(server, tasks(3))).toEqual([202, 202, 429]);
  const { status, headers, body } = await submit(server);
  expect([status, body['code']]).toEqual([429, 'RATE_LIMITED']);
  expect(headers).toMatchObject({
    'retry-after': '1',
    ratelimit: '"pending";r=0;t=1',
    'ratelimit-policy': '"pending";q=2',
  });
  expect(server.differences).toEqual([]);
});

test('work under way is limited, and shedding is counted', async () => {
  let letGo: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (letGo = resolve));
  class SlowStore extends MemoryStore {
    override async counts(queue: string) {
      await held;
      return super.counts(queue);
    }
  }
  const server = await startTestServer({ store: new SlowStore(), settings: { max_inflight: 3 } });
  await makeQueue(server);
  const waiting = Array.from({ length: 3 }, () =>
    server.as('root', { path: '/v1/queues/mail/stats' }),
  );
  await expect.poll(async () => (await submit(server)).status).toBe(429);
  const refused = await submit(server);
  expect(refused.headers['ratelimit']).toBe('"load";r=0;t=1');
  expect(refused.headers['ratelimit-policy']).toBeUndefined();
  // Whoever looks after the server gets through.
  const pause = { method: 'POST', path: '/v1/admin/queues/mail:pause' };
  expect((await server.as('operator', pause)).status).toBe(204);
  expect((await server.send({ path: '/healthz' })).status).toBe(200);
  letGo();
  await Promise.all(waiting);
  expect((await submit(server)).status).toBe(202);
  const text = await (await fetch(`${server.metricsUrl}/metrics`)).text();
  expect(text).toMatch(/millrace_queue_requests_shed_total\{cause="inflight"\} [1-9]/);
});
