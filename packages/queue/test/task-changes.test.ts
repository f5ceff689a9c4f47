import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { startHandler } from './support/handler.js';
import { soon, startReal, statusOf, type Real } from './support/real-server.js';
import { newDirectory } from './support/server.js';

const post = (server: Real, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  server.as('operator', { method: 'POST', path, body, headers });
const codeOf = ({ status, body }: Awaited<ReturnType<typeof post>>) => [status, body['code']];
const isoAt = (ms: number) => new Date(ms).toISOString();

/** A server whose queue delivers nothing, because it is paused. */
async function pausedServer(): Promise<Real> {
  const server = await startReal(newDirectory());
  await server.configure({ callback: { url: 'http://127.0.0.1:9/' } });
  await server.as('admin', { method: 'POST', path: '/v1/admin/queues/mail:pause' });
  return server;
}

test('cancel: closes the connection of a running callback', async () => {
  let isClosed = false;
  const handler = createServer((request) => {
    request.resume();
    request.socket.on('close', () => (isClosed = true));
  });
  await new Promise<void>((resolve) => handler.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    handler.closeAllConnections();
    handler.close();
  });
  const { port } = handler.address() as AddressInfo;
  const server = await startReal(newDirectory());
  await server.configure({ callback: { url: `http://127.0.0.1:${port}/` } });
  const id = await server.submit();
  await expect.poll(statusOf(server, id), soon).toBe('IN_FLIGHT');
  const answer = await post(server, `/v1/tasks/${id}:cancel`, { reason: 'withdrawn' });
  expect(answer.status, answer.text).toBe(200);
  expect(answer.body).toMatchObject({
    status: 'DEAD',
    dead_reason: 'CANCELLED',
    last_error: { error_type: 'CANCELLED', message: 'withdrawn' },
  });
  await expect.poll(() => isClosed, soon).toBe(true);
  expect(await server.task(id)).toMatchObject({
    status: 'DEAD',
    attempts: [{ outcome: 'FAILED', error_type: 'CANCELLED' }],
  });
  expect(server.differences).toEqual([]);
});

test('cancel: a handler that works on its own gets LEASE_LOST when it reports', async () => {
  const handler = await startHandler(() => ({ status: 202, headers: { 'x-queue-async': 'true' } }));
  const server = await startReal(newDirectory());
  await server.configure({ callback: { url: handler.url } });
  const id = await server.submit();
  await expect.poll(() => handler.received.length, soon).toBe(1);
  const token = String(handler.received[0]!.headers['x-queue-lease-token']);
  const headers = { 'x-queue-lease-token': token };
  expect((await post(server, `/v1/tasks/${id}:cancel`)).status).toBe(200);
  for (const [verb, body] of [
    ['extend', { extend_ms: 60_000 }],
    ['complete', {}],
    ['fail', {}],
  ] as const) {
    const answer = await post(server, `/v1/tasks/${id}:${verb}`, body, headers);
    expect([verb, ...codeOf(answer)]).toEqual([verb, 409, 'LEASE_LOST']);
    expect(answer.body).toMatchObject({ reason: 'CANCELLED' });
  }
  expect(server.differences).toEqual([]);
});

test('cancel: a pending task, again, and one that ended', async () => {
  const server = await pausedServer();
  const id = await server.submit();
  const first = await post(server, `/v1/tasks/${id}:cancel`, {});
  expect(first.body).toMatchObject({ last_error: { message: 'The task was cancelled.' } });
  const again = await post(server, `/v1/tasks/${id.toLowerCase()}:cancel`, { reason: 'more' });
  expect([again.status, again.body]).toEqual([200, first.body]);
  const redriven = await post(server, '/v1/queues/mail/dlq:redrive', { ids: [id] });
  expect(redriven.body).toEqual({ count: 1 });
  expect(await server.task(id)).toMatchObject({ status: 'PENDING', dead_reason: null });
  for (const body of [{ reason: 5 }, { why: 'x' }, { reason: 'x'.repeat(1_025) }, []]) {
    expect(codeOf(await post(server, `/v1/tasks/${id}:cancel`, body))).toEqual([
      422,
      'INVALID_TASK',
    ]);
  }
  const forbidden = await server.as('submitter', {
    method: 'POST',
    path: `/v1/tasks/${id}:cancel`,
  });
  expect(codeOf(forbidden)).toEqual([403, 'FORBIDDEN']);
});

test('run-now: a delayed task is delivered at once', async () => {
  const handler = await startHandler(() => ({ status: 204 }));
  const server = await startReal(newDirectory());
  await server.configure({ callback: { url: handler.url } });
  const id = await server.submit({ delay_ms: 3_600_000 });
  const answer = await post(server, `/v1/tasks/${id}:run-now`);
  expect(answer.status, answer.text).toBe(200);
  await expect.poll(statusOf(server, id), soon).toBe('SUCCEEDED');
  expect(codeOf(await post(server, `/v1/tasks/${id}:run-now`))).toEqual([409, 'TASK_NOT_PENDING']);
  expect(codeOf(await post(server, `/v1/tasks/${id}:cancel`))).toEqual([409, 'TASK_FINISHED']);
  expect(server.differences).toEqual([]);
});

test('PATCH: changes priority and time of a pending task', async () => {
  const server = await pausedServer();
  const id = await server.submit();
  const patch = (body: unknown) =>
    server.as('operator', { method: 'PATCH', path: `/v1/tasks/${id}`, body });
  const runAt = isoAt(Date.now() + 3_600_000);
  const answer = await patch({ priority: 8, run_at: runAt });
  expect(answer.body).toMatchObject({ priority: 8, next_attempt_at: runAt });
  const past = await patch({ run_at: '2020-01-01T00:00:00Z' });
  expect(past.body).toMatchObject({ priority: 8 });
  expect(Date.parse(String(past.body['next_attempt_at']))).toBeGreaterThan(Date.now() - 60_000);
  expect((await patch({})).status).toBe(200);
  for (const body of [
    { priority: 10 },
    { priority: null },
    { run_at: 'soon' },
    { run_at: isoAt(Date.now() + 31 * 86_400_000) },
    { handler_ref: 'a' },
    [],
  ]) {
    expect(codeOf(await patch(body))).toEqual([422, 'INVALID_TASK']);
  }
  await post(server, `/v1/tasks/${id}:cancel`);
  const dead = await patch({ priority: 1 });
  expect(codeOf(dead)).toEqual([409, 'TASK_NOT_PENDING']);
  expect(dead.body['detail']).toMatch(/ is DEAD; .* Redrive it to run it again\.$/);
  expect(server.differences).toEqual([]);
});

test('cancel: many tasks by ids and by a filter, audited', async () => {
  const server = await pausedServer();
  const [first, second] = [await server.submit(), await server.submit({ handler_ref: 'b' })];
  for (let i = 0; i < 3; i++) await server.submit({ group_key: 'acme' });
  const cancel = async (body: unknown) =>
    (await post(server, '/v1/queues/mail/tasks:cancel', body)).body;
  expect(await cancel({ filter: {}, dry_run: true })).toEqual({ count: 5 });
  expect(await cancel({ ids: [first, first.toLowerCase()], dry_run: true })).toEqual({ count: 1 });
  expect(await cancel({ ids: [first, second.toLowerCase()] })).toEqual({ count: 2 });
  expect(await cancel({ ids: [first] })).toEqual({ count: 0 });
  expect(await cancel({ filter: { group_key: 'other' } })).toEqual({ count: 0 });
  const filter = { status: 'PENDING', group_key: 'acme', from: '2020-01-01T00:00:00Z' };
  expect(await cancel({ filter, reason: 'closed' })).toEqual({ count: 3 });
  const list = await server.as('operator', { path: '/v1/queues/mail/tasks?status=DEAD' });
  const tasks = list.body['tasks'] as { last_error: { message: string } }[];
  expect(tasks.filter(({ last_error }) => last_error.message === 'closed')).toHaveLength(3);
  const audit = await server.as('root', { path: '/v1/admin/audit?queue=mail' });
  const records = audit.body['records'] as { action: string; selector: unknown; count: number }[];
  const cancels = records.filter(({ action }) => action === 'cancel');
  expect(cancels.map(({ count }) => count)).toEqual([3, 0, 0, 2]);
  expect(cancels[0]!.selector).toEqual({ filter, reason: 'closed' });
  for (const body of [
    {},
    { ids: [], filter: {} },
    { filter: { status: 'DEAD' } },
    { filter: { error_type: 'A' } },
    { ids: ['x'] },
    { filter: { from: '10000-01-01T00:00:00Z' } },
  ]) {
    expect(codeOf(await post(server, '/v1/queues/mail/tasks:cancel', body))).toEqual([
      422,
      'INVALID_SELECTOR',
    ]);
  }
  expect(server.differences).toEqual([]);
});
