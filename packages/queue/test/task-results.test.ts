import { expect, test } from 'vitest';
import { startHandler } from './support/handler.js';
import { soon, startReal, statusOf, type Real } from './support/real-server.js';
import { newDirectory } from './support/server.js';

const json = { 'content-type': 'application/json' };
const get = (server: Real, id: string, query = '') =>
  server.as('submitter', { path: `/v1/tasks/${id}${query}` });
const post = (server: Real, path: string, body: unknown, headers: Record<string, string> = {}) =>
  server.as('submitter', { method: 'POST', path, body, headers });

test('result: a push queue keeps the JSON of a 2xx answer if its config says so', async () => {
  const results = ['{ "invoice": 4711 }', JSON.stringify('x'.repeat(70_000)), '{}'];
  const handler = await startHandler(() => ({
    status: 200,
    headers: json,
    body: results.shift()!,
  }));
  const server = await startReal(newDirectory());
  await server.configure({ callback: { url: handler.url, keep_result: true } });
  const first = await server.submit();
  const answer = await get(server, first, '?wait_ms=30000');
  expect(answer.body).toMatchObject({
    status: 'SUCCEEDED',
    result: { invoice: 4711 },
    result_dropped: false,
    progress: null,
    unique_key: null,
  });
  const second = await server.submit();
  expect((await get(server, second, '?wait_ms=30000')).body).toMatchObject({
    status: 'SUCCEEDED',
    result: null,
    result_dropped: true,
  });
  await server.configure({ callback: { url: handler.url } });
  const third = await server.submit();
  expect((await get(server, third, '?wait_ms=30000')).body).toMatchObject({
    status: 'SUCCEEDED',
    result: null,
    result_dropped: false,
  });
  expect(server.differences).toEqual([]);
});

test('result and progress: are reported by a handler that works on its own', async () => {
  const handler = await startHandler(() => ({ status: 202, headers: { 'x-queue-async': 'true' } }));
  const server = await startReal(newDirectory());
  await server.configure({ callback: { url: handler.url } });
  const id = await server.submit();
  await expect.poll(() => handler.received.length, soon).toBe(1);
  const token = String(handler.received[0]!.headers['x-queue-lease-token']);
  const headers = { 'x-queue-lease-token': token };
  const extend = (progress: unknown) =>
    post(server, `/v1/tasks/${id}:extend`, { extend_ms: 60_000, progress }, headers);
  expect((await extend({ percent: 40, message: '4 of 10' })).status).toBe(200);
  expect((await get(server, id)).body['progress']).toMatchObject({
    percent: 40,
    message: '4 of 10',
    at: expect.stringMatching(/^\d{4}-/),
  });
  expect((await extend({ percent: null })).status).toBe(200);
  expect((await get(server, id)).body['progress']).toMatchObject({ percent: null, message: null });
  for (const progress of [
    { percent: 101 },
    { percent: -1 },
    { percent: '5' },
    { message: 'ü'.repeat(600) },
    { done: 1 },
    null,
  ]) {
    const answer = await extend(progress);
    expect([answer.status, answer.body['code']]).toEqual([422, 'INVALID_TASK']);
  }
  const complete = (result: unknown) =>
    post(server, `/v1/tasks/${id}:complete`, { result }, headers);
  for (const length of [65_535, 2 ** 22]) {
    const large = await complete('x'.repeat(length));
    expect([large.status, large.body['code']]).toEqual([422, 'RESULT_TOO_LARGE']);
  }
  const fits = 'x'.repeat(65_534);
  expect((await complete(fits)).status).toBe(200);
  expect((await complete('other')).status).toBe(200);
  expect((await get(server, id)).body).toMatchObject({ status: 'SUCCEEDED', result: fits });
  expect(server.differences).toEqual([]);
});

test('wait_ms: answers when the task ends, or when the time is over', async () => {
  const handler = await startHandler(() => ({ status: 202, headers: { 'x-queue-async': 'true' } }));
  const server = await startReal(newDirectory());
  await server.configure({ callback: { url: handler.url } });
  const id = await server.submit();
  const early = await get(server, id, '?wait_ms=50');
  expect(['PENDING', 'IN_FLIGHT']).toContain(early.body['status']);
  const waiting = get(server, id, '?wait_ms=60000');
  await expect.poll(statusOf(server, id), soon).toBe('IN_FLIGHT');
  await server.as('operator', { method: 'POST', path: `/v1/tasks/${id}:cancel` });
  expect((await waiting).body).toMatchObject({ status: 'DEAD', dead_reason: 'CANCELLED' });
  for (const value of ['60001', '-1', 'x', '1.5']) {
    const answer = await get(server, id, `?wait_ms=${value}`);
    expect([answer.status, answer.body['code']]).toEqual([422, 'INVALID_QUERY']);
  }
  expect((await get(server, id, '?unknown=1')).status).toBe(200);
  expect(server.differences).toEqual([]);
});

test('wait_ms: a shutdown ends the wait', async () => {
  const server = await startReal(newDirectory());
  await server.configure({ callback: { url: 'http://127.0.0.1:9/' } });
  const id = await server.submit({ delay_ms: 3_600_000 });
  const waiting = get(server, id, '?wait_ms=60000');
  // Answered after the wait has begun, because requests are handled in order.
  await get(server, id);
  await server.running.stop();
  expect((await waiting).body).toMatchObject({ status: 'PENDING' });
});

test('unique_key: a second submit answers with the task that holds it', async () => {
  const server = await startReal(newDirectory());
  await server.configure({ callback: { url: 'http://127.0.0.1:9/' } });
  const submit = (body: Record<string, unknown>) =>
    post(server, '/v1/queues/mail/tasks', { handler_ref: 'a', delay_ms: 3_600_000, ...body });
  const first = await submit({ unique_key: 'invoice-1' });
  expect(first.headers['idempotent-replayed']).toBeUndefined();
  const id = String(first.body['id']);
  const second = await submit({ unique_key: 'invoice-1', handler_ref: 'b' });
  expect([second.status, second.headers['idempotent-replayed']]).toEqual([202, 'true']);
  expect(second.body).toEqual(first.body);
  expect((await get(server, id)).body).toMatchObject({ unique_key: 'invoice-1' });
  const batch = await post(server, '/v1/queues/mail/tasks:batch', [
    { handler_ref: 'a', unique_key: 'invoice-1' },
    { handler_ref: 'a', unique_key: 'invoice-2' },
  ]);
  const items = batch.body as unknown as { envelope: { id: string } }[];
  expect(items[0]!.envelope.id).toBe(id);
  expect(items[1]!.envelope.id).not.toBe(id);
  await server.as('operator', { method: 'POST', path: `/v1/tasks/${id}:cancel` });
  const third = await submit({ unique_key: 'invoice-1' });
  expect(third.body['id']).not.toBe(id);
  for (const body of [
    { unique_key: '' },
    { unique_key: 'x'.repeat(257) },
    { unique_key: 'ü'.repeat(129) },
    { unique_key: 5 },
    { unique_key: 'k', unique_for_ms: 0 },
    { unique_key: 'k', unique_for_ms: 30 * 86_400_000 + 1 },
    { unique_for_ms: 1_000 },
  ]) {
    const answer = await submit(body);
    expect([answer.status, answer.body['code']]).toEqual([422, 'INVALID_TASK']);
  }
  const longest = { unique_key: 'ü'.repeat(128), unique_for_ms: 30 * 86_400_000 };
  expect((await submit(longest)).status).toBe(202);
  expect(server.differences).toEqual([]);
});
