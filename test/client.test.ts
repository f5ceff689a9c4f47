import { bodyOf, daemonClient, Problem, queueClient } from '@millrace/client';
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
  const client = queueClient({
    url,
    token: tokens.root,
    fetch: async (request) => {
      sent.push(((await request.clone().json()) as { id: string }).id);
      const answer = await fetch(request);
      // It is stored, and nobody hears of it.
      if (sent.length < 3) throw new TypeError('the line was cut');
      return answer;
    },
  });
  const { id } = await client.submit('mail', task, atOnce);
  expect(sent).toEqual([id, id, id]);
  const watcher = queueClient({ url, token: () => tokens.root });
  const stats = await bodyOf(
    watcher.GET('/v1/queues/{queue}/stats', { params: { path: { queue: 'mail' } } }),
  );
  expect(stats.pending).toBe(1);
});

test('a refusal is told at once, with its code and what to do', async () => {
  const { url } = await newQueue();
  let tries = 0;
  const client = queueClient({
    url,
    token: tokens.root,
    fetch: (request) => {
      tries++;
      return fetch(request);
    },
  });
  const refused = await client.submit('nope', task, atOnce).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(Problem);
  expect(refused).toMatchObject({ status: 404, code: 'QUEUE_NOT_FOUND' });
  expect((refused as Problem).message).toContain('nope');
  expect(tries).toBe(1);
});

test('a server that asks to wait is asked again after that time', async () => {
  const waits: number[] = [];
  const answers = [
    new Response('{"code":"RATE_LIMITED"}', { status: 429, headers: { 'retry-after': '2' } }),
    Response.json({ id: '01ARYZ6S410000000000000000', status: 'PENDING' }, { status: 202 }),
  ];
  const client = queueClient({
    url: 'http://queue.test',
    fetch: () => Promise.resolve(answers.shift()!),
  });
  const wait = async (ms: number) => void waits.push(ms);
  await client.submit('mail', task, { wait });
  expect(waits).toEqual([2_000]);
});

test('the last failure is told when no try succeeds', async () => {
  const client = queueClient({ url: 'http://127.0.0.1:9' });
  await expect(client.submit('mail', task, { ...atOnce, attempts: 2 })).rejects.toThrow('fetch');
});

test('the daemon answers with the types of its contract', async () => {
  const client = daemonClient({ url: daemon.url });
  const { backends, settings } = await bodyOf(client.GET('/api/v1/backends'));
  expect(settings.internal_thinking_mode).toBe('free_plus_local');
  expect(backends.map(({ id }) => id)).toContain('claude');
  const params = { path: { id: 'nobody' } };
  await expect(
    bodyOf(client.PATCH('/api/v1/backends/{id}', { params, body: {} })),
  ).rejects.toMatchObject({ status: 404, code: 'BACKEND_NOT_FOUND' });
});
