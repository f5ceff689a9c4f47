import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { startHandler } from './support/handler.js';
import { soon, startReal, statusOf } from './support/real-server.js';
import { newDirectory } from './support/server.js';

test('a task is delivered, signed, and succeeds', async () => {
  const handler = await startHandler(() => ({ status: 204 }));
  const server = await startReal(newDirectory());
  await server.configure({
    callback: {
      url: handler.url,
      auth: { type: 'bearer', secret_ref: 'mail-token' },
      signing: { secret_refs: ['mail-signing'] },
    },
  });
  const payload = Buffer.from('{"to":"ada"}');
  const id = await server.submit({
    payload: payload.toString('base64'),
    payload_content_type: 'application/json',
    headers: { 'X-Tenant': 'acme' },
  });
  await expect.poll(statusOf(server, id), soon).toBe('SUCCEEDED');
  expect(handler.received).toHaveLength(1);
  const { headers, body } = handler.received[0]!;
  expect(body).toEqual(payload);
  expect(headers).toMatchObject({
    authorization: 'Bearer abc123',
    'content-type': 'application/json',
    'x-tenant': 'acme',
    'x-queue-name': 'mail',
    'x-queue-task-id': id,
    'x-queue-handler-ref': 'mail.send',
    'x-queue-attempt': '1',
    'webhook-id': id,
  });
  new Webhook('A'.repeat(32)).verify(body.toString(), headers as Record<string, string>);
  const task = await server.task(id);
  expect(task).toMatchObject({ attempt: 1, last_error: null, attempts: [{ http_status: 204 }] });
  expect(server.differences).toEqual([]);
});

test('a failure ends in the DLQ, also over restarts, and succeeds after a redrive', async () => {
  let isWell = false;
  const handler = await startHandler(() =>
    isWell ? { status: 200 } : { status: 500, body: 'out of order' },
  );
  const directory = newDirectory();
  let server = await startReal(directory);
  await server.configure({
    callback: { url: handler.url },
    retry: { max_attempts: 2, initial_backoff_ms: 10 },
  });
  const id = await server.submit();
  await expect.poll(statusOf(server, id), soon).toBe('DEAD');
  const path = '/v1/queues/mail/dlq?limit=1';
  const other = await server.submit();
  await expect.poll(statusOf(server, other), soon).toBe('DEAD');
  const first = await server.as('operator', { path });
  await server.stop();

  server = await startReal(directory);
  const next = await server.as('operator', { path: `${path}&cursor=${first.body['next_cursor']}` });
  expect(next.body).toMatchObject({
    tasks: [
      {
        id,
        status: 'DEAD',
        dead_reason: 'ATTEMPTS_EXHAUSTED',
        attempt: 2,
        last_error: { error_type: 'HTTP_5XX', http_status: 500 },
        attempts: [{ response_snippet: 'out of order' }, { attempt: 2 }],
      },
    ],
    next_cursor: '',
  });
  isWell = true;
  const body = { filter: { error_type: 'HTTP_5XX' } };
  const redrive = { method: 'POST', path: '/v1/queues/mail/dlq:redrive', body };
  expect((await server.as('operator', redrive)).body).toEqual({ count: 2 });
  await expect.poll(statusOf(server, id), soon).toBe('SUCCEEDED');
  await expect.poll(statusOf(server, other), soon).toBe('SUCCEEDED');
  const task = await server.task(id);
  expect(task).toMatchObject({ attempt: 1, total_attempts: 3, redrive_count: 1 });
  expect(task['attempts']).toHaveLength(3);
  expect(server.differences).toEqual([]);
});

test('long work is settled by its handler, and the token of another attempt is refused', async () => {
  const handler = await startHandler(() => ({
    status: 202,
    headers: { 'x-queue-async': 'true' },
  }));
  const server = await startReal(newDirectory());
  await server.configure({ callback: { url: handler.url } });
  const id = await server.submit();
  await expect.poll(() => handler.received.length, soon).toBe(1);
  const token = String(handler.received[0]!.headers['x-queue-lease-token']);
  const call = (verb: string, body: unknown, lease = token) =>
    server.as('submitter', {
      method: 'POST',
      path: `/v1/tasks/${id}:${verb}`,
      headers: { 'x-queue-lease-token': lease },
      body,
    });
  await expect
    .poll(async () => {
      const left = Date.parse(String((await server.task(id))['lease_expires_at'])) - Date.now();
      return left > 3_000_000;
    }, soon)
    .toBe(true);
  const extended = await call('extend', { extend_ms: 7_200_000 });
  expect(extended.body).toMatchObject({ status: 'IN_FLIGHT' });
  const end = Date.parse(String(extended.body['lease_expires_at']));
  expect(end - Date.now()).toBeGreaterThan(7_000_000);
  expect((await call('complete', {}, 'stale')).body['code']).toBe('LEASE_LOST');
  expect((await call('complete', {})).body).toMatchObject({ status: 'SUCCEEDED' });
  expect((await call('complete', {})).status).toBe(200);
  expect((await call('fail', {})).body['code']).toBe('LEASE_LOST');
  expect(server.differences).toEqual([]);
});

test('a probe returns the response of the callback, and stores nothing', async () => {
  let status = 204;
  const handler = await startHandler(() => ({ status }));
  const server = await startReal(newDirectory());
  await server.configure({ callback: { url: handler.url } });
  const probe = async () =>
    (await server.as('admin', { method: 'POST', path: '/v1/admin/queues/mail:test' })).body;
  expect(await probe()).toMatchObject({ delivered: true, http_status: 204, error_type: null });
  expect(handler.received[0]!.headers).toMatchObject({
    'x-queue-probe': 'true',
    'x-queue-handler-ref': 'queue.probe',
  });
  expect(handler.received[0]!.headers).not.toHaveProperty('x-queue-lease-token');
  status = 500;
  expect(await probe()).toMatchObject({ delivered: false, http_status: 500 });
  await server.configure({ callback: { url: 'http://127.0.0.1:1/nobody' } });
  expect(await probe()).toMatchObject({
    delivered: false,
    http_status: null,
    error_type: 'CONNECTION_REFUSED',
  });
  const stats = await server.as('admin', { path: '/v1/queues/mail/stats' });
  expect(stats.body).toMatchObject({ pending: 0, in_flight: 0, dlq_depth: 0 });
  expect(server.differences).toEqual([]);
});

test('a paused queue keeps its tasks, and a resumed one runs them', async () => {
  const handler = await startHandler(() => ({ status: 200 }));
  const directory = newDirectory();
  let server = await startReal(directory);
  await server.configure({ callback: { url: handler.url } });
  const verb = (name: string) =>
    server.as('operator', { method: 'POST', path: `/v1/admin/queues/mail:${name}` });
  await verb('pause');
  const id = await server.submit();
  expect(await server.task(id)).toMatchObject({ status: 'PENDING', waiting_for: 'paused' });
  await server.stop();
  server = await startReal(directory);
  expect(await server.task(id)).toMatchObject({ status: 'PENDING', waiting_for: 'paused' });
  await verb('resume');
  await expect.poll(statusOf(server, id), soon).toBe('SUCCEEDED');
  expect(handler.received).toHaveLength(1);
});

test('tasks that run when the server stops are handed back and cost no attempt', async () => {
  let afterMs = 60_000;
  const handler = await startHandler(() => ({ status: 200, afterMs }));
  const directory = newDirectory();
  let server = await startReal(directory);
  await server.configure({ callback: { url: handler.url } });
  const id = await server.submit();
  await expect.poll(() => handler.received.length, soon).toBe(1);
  // The drain is 5 s here; the API answers meanwhile, and says that the server is not ready.
  const stopping = server.stop();
  await stopping;
  afterMs = 0;
  server = await startReal(directory);
  await expect.poll(statusOf(server, id), soon).toBe('SUCCEEDED');
  expect(await server.task(id)).toMatchObject({
    attempt: 1,
    attempts: [{ outcome: 'INTERRUPTED' }, { outcome: 'SUCCEEDED' }],
  });
});

test('the metrics count what happened', async () => {
  const handler = await startHandler(() => ({ status: 200 }));
  const server = await startReal(newDirectory());
  await server.configure({ callback: { url: handler.url } });
  const id = await server.submit();
  await server.submit({ delay_ms: 60_000 });
  await expect.poll(statusOf(server, id), soon).toBe('SUCCEEDED');
  const text = await (await fetch(`${server.metricsUrl}/metrics`)).text();
  expect(text).toContain('millrace_queue_tasks{queue="mail",state="pending"} 1');
  expect(text).toContain('millrace_queue_storage_up 1');
  expect(text).toMatch(/millrace_queue_http_request_duration_seconds_count\{.*submitTask.*\} 2/);
  const names = text.match(/^[a-z_]+/gm) ?? [];
  expect(names.filter((name) => !name.startsWith('millrace_queue_'))).toEqual([]);
});
