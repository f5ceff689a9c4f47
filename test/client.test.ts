import { ApiError, createDaemonClient, createQueueApi } from '@millrace/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startDaemon, type TestDaemon } from '../packages/daemon/test/support/daemon.js';
import { makeQueue, startTestServer, tokens } from '../packages/queue/test/support/server.js';

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await startDaemon();
});
afterAll(() => daemon.dispose());

const task = { handler_ref: 'greet', payload: btoa('hello'), payload_content_type: 'text/plain' };
const atOnce = { wait: () => Promise.resolve() };

async function newQueue() {
  const server = await startTestServer();
  await makeQueue(server, 'mail');
  return server;
}

test('a task whose answer was lost is stored once', async () => {
  const { url } = await newQueue();
  const sent: string[] = [];
  const client = createQueueApi({
    url,
    token: tokens.root,
    fetch: async (target, init) => {
      sent.push((JSON.parse(init.body!) as { id: string }).id);
      const answer = await fetch(target, init);
      // It is stored, and nobody is notified of it.
      if (sent.length < 3) throw new TypeError('the line was cut');
      return answer;
    },
  });
  const { id } = await client.submit('mail', task, atOnce);
  expect(sent).toEqual([id, id, id]);
  const watcher = createQueueApi({ url, token: () => tokens.root });
  const stats = await watcher.call('getStats', { path: { queue: 'mail' } });
  expect(stats.pending).toBe(1);
});

test('a refusal is reported at once, with its code and what to do', async () => {
  const { url } = await newQueue();
  let tries = 0;
  const client = createQueueApi({
    url,
    token: tokens.root,
    fetch: (target, init) => {
      tries++;
      return fetch(target, init);
    },
  });
  const refused = await client.submit('nope', task, atOnce).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(ApiError);
  expect(refused).toMatchObject({ status: 404, code: 'QUEUE_NOT_FOUND' });
  expect((refused as ApiError).detail).toContain('nope');
  expect(tries).toBe(1);
});

test('a server that asks to wait is asked again after that time', async () => {
  const waits: number[] = [];
  const answers = [
    new Response('{"code":"RATE_LIMITED"}', { status: 429, headers: { 'retry-after': '2' } }),
    Response.json({ id: '01ARYZ6S410000000000000000', status: 'PENDING' }, { status: 202 }),
  ];
  const client = createQueueApi({
    url: 'http://queue.test',
    fetch: () => Promise.resolve(answers.shift()!),
  });
  const wait = async (ms: number) => void waits.push(ms);
  await client.submit('mail', task, { wait });
  expect(waits).toEqual([2_000]);
});

test('the last failure is reported when no try succeeds', async () => {
  const client = createQueueApi({ url: 'http://127.0.0.1:9' });
  await expect(client.submit('mail', task, { ...atOnce, attempts: 2 })).rejects.toThrow('fetch');
});

test('the daemon answers with the types of its contract', async () => {
  const client = createDaemonClient({ url: daemon.url });
  const { backends, settings } = await client.call('listBackends');
  expect(settings.internal_thinking_mode).toBe('free_plus_local');
  expect(backends.map(({ id }) => id)).toContain('claude');
  await expect(
    client.call('updateBackend', { path: { id: 'nobody' }, body: {} }),
  ).rejects.toMatchObject({ status: 404, code: 'BACKEND_NOT_FOUND' });
});

test('client: sends path, query, body and headers as the contract has them', async () => {
  const sent: { url: string; init: object }[] = [];
  const client = createDaemonClient({
    url: 'http://daemon.test/',
    token: () => 'mr_1',
    fetch: async (url, init) => {
      sent.push({ url, init });
      return Response.json({ lines: [], next: 0 }, { headers: { etag: '"7"' } });
    },
  });
  const request = { path: { id: 'a/b' }, query: { limit: 5 }, headers: { 'x-one': '1' } };
  const { status, headers } = await client.send('getSessionOutput', request);
  expect([status, headers.get('etag')]).toEqual([200, '"7"']);
  const headersSent = { accept: 'application/json', authorization: 'Bearer mr_1', 'x-one': '1' };
  expect(sent).toEqual([
    {
      url: 'http://daemon.test/api/v1/sessions/a%2Fb/output?limit=5',
      init: { method: 'GET', redirect: 'manual', headers: headersSent },
    },
  ]);
});

test('client: a success that is not JSON is an ApiError without a code', async () => {
  const fetch = () => Promise.resolve(new Response('<html>', { status: 200 }));
  const client = createDaemonClient({ url: 'http://daemon.test', fetch });
  await expect(client.call('getSpend')).rejects.toMatchObject({ status: 200, code: '' });
});
