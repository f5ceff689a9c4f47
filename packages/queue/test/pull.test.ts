import { connect } from 'node:net';
import { memoryLog } from '@millrace/kit/log';
import { systemClock } from '@millrace/kit/clock';
import { systemRandom } from '@millrace/kit/random';
import { describe, expect, onTestFinished, test } from 'vitest';
import { serverDependencies } from '../src/server/serve.js';
import { startServer } from '../src/server/server.js';
import { httpClient, type TestRequest } from './support/http-client.js';
import { newDirectory, testSettings, tokens, type Who } from './support/server.js';

type Body = Record<string, unknown>;
interface Claimed extends Body {
  id: string;
  lease_token: string;
}

/** The whole server on its embedded store, with a pull queue. */
async function startPull(config: Body = {}, over: Partial<ReturnType<typeof testSettings>> = {}) {
  const world = { clock: systemClock, random: systemRandom, log: memoryLog() };
  const settings = { ...testSettings(newDirectory()), ...over };
  const running = await startServer(settings, world, serverDependencies);
  const send = httpClient(running.listeners[0]!.url);
  onTestFinished(async () => {
    send.close();
    await running.stop();
  });
  const as = (who: Who, request: TestRequest) => send({ ...request, token: tokens[who] });
  const post = (who: Who, path: string, body: unknown, headers = {}) =>
    as(who, { method: 'POST', path, body, headers });
  const put = await as('admin', {
    method: 'PUT',
    path: '/v1/admin/queues/mail/config',
    body: { callback: { protocol: 'pull' }, ...config },
  });
  expect(put.status, put.text).toBe(200);
  return {
    as,
    post,
    running,
    config: put.body,
    submit: async (body: Body = {}) => {
      const task = { handler_ref: 'mail.send', ...body };
      const answer = await post('submitter', '/v1/queues/mail/tasks', task);
      expect(answer.status, answer.text).toBe(202);
      return String(answer.body['id']);
    },
    claim: async (body: Body = {}) => {
      const request = { worker: 'w1', limit: 10, ...body };
      const answer = await post('worker', '/v1/queues/mail/tasks:claim', request);
      expect(answer.status, answer.text).toBe(200);
      return answer.body['tasks'] as Claimed[];
    },
  };
}

test('config: a pull queue has no url and can be written back as read', async () => {
  const server = await startPull();
  expect(server.config['callback']).toMatchObject({ protocol: 'pull', timeout_ms: 30_000 });
  expect(server.config['callback']).not.toHaveProperty('url');
  const path = '/v1/admin/queues/mail/config';
  const put = (body: unknown) => server.as('admin', { method: 'PUT', path, body });
  expect((await put(server.config)).status).toBe(200);
  const both = await put({ callback: { protocol: 'pull', url: 'http://127.0.0.1:9000/' } });
  expect([both.status, both.body['code']]).toEqual([422, 'INVALID_CONFIG']);
  expect(both.body['errors']).toMatchObject([{ pointer: '/callback/url' }]);
  const none = await put({ callback: { protocol: 'http' } });
  expect(none.body['errors']).toMatchObject([{ pointer: '/callback/url' }]);
  const [listed] = (await server.as('admin', { path: '/v1/admin/queues' })).body as never as Body[];
  expect(listed!['summary']).toMatchObject({ callback_url: null });
  const probe = await server.post('admin', '/v1/admin/queues/mail:test', undefined);
  expect(probe.body).toMatchObject({ delivered: false, error_type: 'INTERNAL' });
});

test('claim: gives the full task and its lease, and :complete settles it', async () => {
  const server = await startPull();
  const payload = Buffer.from('{"to":"ada"}').toString('base64');
  const id = await server.submit({ payload, headers: { 'X-Tenant': 'acme' } });
  const [task, ...more] = await server.claim({ lease_ms: 60_000 });
  expect(more).toEqual([]);
  expect(task).toMatchObject({
    id,
    status: 'IN_FLIGHT',
    payload,
    headers: { 'X-Tenant': 'acme' },
    attempt: 1,
    attempts: [],
  });
  const leaseMs = Date.parse(String(task!['lease_expires_at'])) - systemClock.now();
  expect(leaseMs).toBeGreaterThan(50_000);
  const headers = { 'x-queue-lease-token': task!.lease_token };
  const done = await server.post('worker', `/v1/tasks/${id}:complete`, {}, headers);
  expect([done.status, done.body['status']]).toEqual([200, 'SUCCEEDED']);
  const again = await server.post('worker', `/v1/tasks/${id}:complete`, {}, headers);
  expect(again.status).toBe(200);
});

test('claim: a waiting claim is woken by a submit', async () => {
  const server = await startPull();
  const waiting = server.claim({ wait_ms: 30_000 });
  await server.claim({ worker: 'w2' });
  const id = await server.submit();
  expect((await waiting).map((task) => task.id)).toEqual([id]);
});

test('claim: a client that disconnects leaves the task to others', async () => {
  const server = await startPull();
  const abort = new AbortController();
  const url = `${server.running.listeners[0]!.url}/v1/queues/mail/tasks:claim`;
  const gone = fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${tokens.worker}`, 'content-type': 'application/json' },
    body: JSON.stringify({ worker: 'gone', wait_ms: 30_000 }),
    signal: abort.signal,
  });
  const workers = async () =>
    (await server.as('operator', { path: '/v1/queues/mail/workers' })).body['workers'];
  await expect.poll(workers).toHaveLength(1);
  abort.abort();
  await expect(gone).rejects.toThrow();
  const id = await server.submit();
  const found = async () => (await server.claim({ wait_ms: 1_000 })).map((task) => task.id);
  await expect.poll(found).toEqual([id]);
});

test('settle: ends up to 100 tasks, each with a result', async () => {
  const server = await startPull({ retry: { initial_backoff_ms: 10 } });
  for (let i = 0; i < 3; i++) await server.submit();
  const [a, b, c] = await server.claim();
  const item = (task: Claimed | undefined, more: Body) => ({
    id: task!.id,
    lease_token: task!.lease_token,
    ...more,
  });
  const path = '/v1/queues/mail/tasks:settle';
  const items = [
    item(a, { outcome: 'complete' }),
    item(b, { outcome: 'fail', retry: false, message: 'no such mailbox', error_type: 'BAD' }),
    item(c, { outcome: 'complete', lease_token: 'stale' }),
    item(c, { outcome: 'complete', id: 'nonsense' }),
    item(c, { outcome: 'maybe' }),
    'text',
    { id: c!.id, outcome: 'complete' },
  ];
  const answer = await server.post('worker', path, { items });
  expect(answer.status, answer.text).toBe(207);
  expect(answer.body).toMatchObject([
    { index: 0, status: 200, envelope: { status: 'SUCCEEDED' } },
    { index: 1, status: 200, envelope: { status: 'DEAD', last_error: { error_type: 'BAD' } } },
    { index: 2, status: 409, error: { code: 'LEASE_LOST', status: 409 } },
    { index: 3, status: 404, error: { code: 'TASK_NOT_FOUND', status: 404 } },
    { index: 4, status: 422, error: { code: 'INVALID_CLAIM', status: 422 } },
    { index: 5, status: 422, error: { code: 'INVALID_CLAIM' } },
    { index: 6, status: 422, error: { code: 'INVALID_CLAIM' } },
  ]);
  const many = await server.post('worker', path, {
    items: Array.from({ length: 101 }, () => item(a, { outcome: 'complete' })),
  });
  expect([many.status, many.body['code']]).toEqual([422, 'INVALID_CLAIM']);
  expect((await server.post('submitter', path, { items })).status).toBe(403);
});

test.each([
  [{}],
  [{ worker: '' }],
  [{ worker: 'w'.repeat(129) }],
  [{ worker: 'a\0b' }],
  [{ worker: 'a\nb' }],
  [{ worker: 'w', limit: 0 }],
  [{ worker: 'w', limit: 101 }],
  [{ worker: 'w', wait_ms: -1 }],
  [{ worker: 'w', wait_ms: 30_001 }],
  [{ worker: 'w', lease_ms: 999 }],
  [{ worker: 'w', lease_ms: 3_600_001 }],
  [{ worker: 'w', handlers: [] }],
  [{ worker: 'w', handler: ['a'] }],
  ['text'],
])('claim: %j is 422 INVALID_CLAIM', async (body) => {
  const server = await startPull();
  const answer = await server.post('worker', '/v1/queues/mail/tasks:claim', body);
  expect([answer.status, answer.body['code']]).toEqual([422, 'INVALID_CLAIM']);
});

test('worker role: sees a task only while it holds its lease', async () => {
  const server = await startPull();
  const id = await server.submit();
  const read = async (headers = {}) =>
    (await server.as('worker', { path: `/v1/tasks/${id}`, headers })).status;
  expect(await read()).toBe(403);
  const [task] = await server.claim();
  const headers = { 'x-queue-lease-token': task!.lease_token };
  expect([await read(), await read(headers)]).toEqual([403, 200]);
  expect(await read({ 'x-queue-lease-token': 'stale' })).toBe(403);
  await server.post('worker', `/v1/tasks/${id}:complete`, {}, headers);
  expect(await read(headers)).toBe(403);
  const submit = { method: 'POST', path: '/v1/queues/mail/tasks', body: { handler_ref: 'a' } };
  expect((await server.as('worker', submit)).status).toBe(403);
});

test('workers: an operator sees who works', async () => {
  const server = await startPull();
  await server.submit();
  await server.submit();
  const [task] = await server.claim();
  const headers = { 'x-queue-lease-token': task!.lease_token };
  await server.post('worker', `/v1/tasks/${task!.id}:complete`, {}, headers);
  const answer = await server.as('operator', { path: '/v1/queues/mail/workers' });
  expect(answer.body['workers']).toMatchObject([
    {
      worker: 'w1',
      principal: 'worker',
      remote_ip: '127.0.0.1',
      claimed: 2,
      completed: 1,
      failed: 0,
      in_flight: 1,
    },
  ]);
});

test('workers: a cancelled task is neither in flight nor a failure of its worker', async () => {
  const server = await startPull();
  const id = await server.submit();
  const [task] = await server.claim();
  expect(task!.id).toBe(id);
  await server.post('operator', `/v1/tasks/${id}:cancel`, {});
  const answer = await server.as('operator', { path: '/v1/queues/mail/workers' });
  const counts = { claimed: 1, completed: 0, failed: 0, in_flight: 0 };
  expect(answer.body['workers']).toMatchObject([{ worker: 'w1', ...counts }]);
});

test('settle: the item of a cancelled task says that it was cancelled', async () => {
  const server = await startPull();
  const id = await server.submit();
  const [task] = await server.claim();
  await server.post('operator', `/v1/tasks/${id}:cancel`, {});
  const item = { id, lease_token: task!.lease_token, outcome: 'complete' };
  const other = { ...item, id: await server.submit() };
  const body = { items: [item, { ...item, outcome: 'fail' }, other] };
  const answer = await server.post('worker', '/v1/queues/mail/tasks:settle', body);
  const cancelled = { status: 409, error: { code: 'LEASE_LOST', reason: 'CANCELLED' } };
  const lost = { status: 409, error: { code: 'LEASE_LOST' } };
  expect(answer.body).toMatchObject([cancelled, cancelled, lost]);
  expect(JSON.stringify(answer.body).match(/"reason"/g)).toHaveLength(2);
});

test('shutdown: a waiting claim ends with an empty list', async () => {
  const server = await startPull();
  const waiting = server.claim({ wait_ms: 30_000 });
  const workers = async () =>
    (await server.as('operator', { path: '/v1/queues/mail/workers' })).body['workers'];
  await expect.poll(workers).toHaveLength(1);
  const stopped = server.running.stop();
  expect(await waiting).toEqual([]);
  await stopped;
});

describe('a claim whose answer does not reach the worker', () => {
  const payload = Buffer.alloc(2 ** 20, 7).toString('base64');
  const claimPath = '/v1/queues/mail/tasks:claim';

  async function startFilled(count: number, over: Parameters<typeof startPull>[1] = {}) {
    const server = await startPull({}, over);
    const ids: string[] = [];
    for (let i = 0; i < count; i++) ids.push(await server.submit({ payload }));
    const states = () =>
      Promise.all(
        ids.map(async (id) => {
          const { body } = await server.as('operator', { path: `/v1/tasks/${id}` });
          return `${String(body['status'])} ${String(body['attempt'])}`;
        }),
      );
    return { ...server, states };
  }

  test('because it is too large: its tasks can be claimed again', async () => {
    const server = await startFilled(4, { max_peer_memory_bytes: 16 * 2 ** 20 });
    const body = { worker: 'w1', limit: 4 };
    const refused = await server.post('worker', claimPath, body);
    expect(refused.status, refused.text).toBe(429);
    await expect.poll(server.states).toEqual(Array(4).fill('PENDING 0'));
    expect(await server.claim({ limit: 1 })).toHaveLength(1);
  });

  test('because it disconnects: its tasks can be claimed again', async () => {
    const server = await startFilled(12);
    const { hostname, port } = new URL(server.running.listeners[0]!.url);
    const socket = connect({ host: hostname, port: Number(port) });
    socket.pause();
    const body = JSON.stringify({ worker: 'w1', limit: 12 });
    socket.write(
      `POST ${claimPath} HTTP/1.1\r\nHost: ${hostname}:${port}\r\n` +
        `Authorization: Bearer ${tokens.worker}\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${body.length}\r\n\r\n${body}`,
    );
    await expect.poll(server.states).toEqual(Array(12).fill('IN_FLIGHT 1'));
    socket.destroy();
    await expect.poll(server.states).toEqual(Array(12).fill('PENDING 0'));
  });
});
