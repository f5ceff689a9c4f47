import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { sampleConfig } from '../src/delivery/delivery.test-support.js';
import { makeQueue, plainConfig, newEmbeddedStore, startTestServer } from './support/server.js';
import { buryTasks, submitOne } from './support/tasks.js';

const store = await newEmbeddedStore(afterAll);
const server = await startTestServer({ onEnd: afterAll, store });
let queues = 0;
const newName = () => `mail.config${++queues}`;
const pathOf = (queue: string) => `/v1/admin/queues/${queue}/config`;
const get = (queue: string) => server.as('admin', { path: pathOf(queue) });
const put = (queue: string, body: unknown, headers: Record<string, string> = {}, query = '') =>
  server.as('admin', { method: 'PUT', path: pathOf(queue) + query, body, headers });
const verb = (queue: string, name: string) =>
  server.as('admin', { method: 'POST', path: `/v1/admin/queues/${queue}:${name}` });

test('a config of nothing but its URL gets every default', async () => {
  const queue = newName();
  const { status, body, headers } = await put(queue, plainConfig);
  expect(status).toBe(200);
  expect(headers.etag).toBe('"1"');
  const { created_at: createdAt, updated_at: updatedAt, ...rest } = body;
  expect(createdAt).toBe(updatedAt);
  expect(rest).toEqual({
    name: queue,
    paused: false,
    version: 1,
    ...sampleConfig({ callback: { url: plainConfig.callback.url } }),
  });
  const read = await get(queue);
  expect(read.body).toEqual(body);
  expect(read.headers.etag).toBe('"1"');
});

test('secrets are named, and never shown', async () => {
  const queue = newName();
  const callback = {
    ...plainConfig.callback,
    auth: { type: 'header', name: 'X-Api-Key', secret_ref: 'mail-token' },
    signing: { secret_refs: ['mail-signing'] },
  };
  const { status, body, text } = await put(queue, { callback });
  expect(status, text).toBe(200);
  expect(body['callback']).toMatchObject({
    auth: callback.auth,
    signing: { scheme: 'standard_webhooks', secret_refs: ['mail-signing'] },
  });
  expect(text).not.toContain('abc123');
  expect(text).not.toContain('whsec_');
});

test('a write replaces the whole config and raises the version', async () => {
  const queue = newName();
  await put(queue, { ...plainConfig, description: 'one', limits: { max_in_flight: 3 } });
  const { body, headers } = await put(queue, { ...plainConfig, description: 'two' });
  expect(body).toMatchObject({ version: 2, description: 'two', limits: { max_in_flight: 64 } });
  expect(headers.etag).toBe('"2"');
});

test('what was read can be sent back as it is', async () => {
  const queue = newName();
  const { body } = await put(queue, plainConfig);
  const again = await put(queue, body);
  expect(again.status, again.text).toBe(200);
  expect(again.body).toMatchObject({ version: 2, created_at: body['created_at'] });
  // Now the version in it is not the current one.
  expect((await put(queue, body)).body['code']).toBe('INVALID_CONFIG');
});

describe('If-Match', () => {
  test('lets one of two writers through', async () => {
    const queue = newName();
    const { body } = await put(queue, plainConfig);
    const edits = ['one', 'two'].map((description) =>
      put(queue, { ...body, description }, { 'if-match': '"1"' }),
    );
    const statuses = (await Promise.all(edits)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([200, 412]));
  });

  test('takes a list, and a star for any', async () => {
    const queue = newName();
    await put(queue, plainConfig);
    expect((await put(queue, plainConfig, { 'if-match': '"7", "1"' })).status).toBe(200);
    expect((await put(queue, plainConfig, { 'if-match': '*' })).status).toBe(200);
    expect((await put(queue, plainConfig, { 'if-match': '"1"' })).status).toBe(412);
  });

  test('never makes a queue', async () => {
    const queue = newName();
    expect((await put(queue, plainConfig, { 'if-match': '*' })).status).toBe(412);
    expect((await put(queue, plainConfig, { 'if-match': '"0"' })).status).toBe(412);
    expect((await get(queue)).status).toBe(404);
  });
});

test('a trial run checks everything and writes nothing', async () => {
  const queue = newName();
  const trial = await put(queue, plainConfig, {}, '?validate_only=true');
  expect(trial.status).toBe(200);
  expect(trial.body).toMatchObject({ name: queue, version: 1 });
  expect(trial.headers.etag).toBeUndefined();
  expect((await get(queue)).status).toBe(404);
  await put(queue, plainConfig);
  const next = await put(queue, { ...plainConfig, description: 'x' }, {}, '?validate_only=true');
  expect(next.body).toMatchObject({ version: 2, description: 'x' });
  expect((await get(queue)).body).toMatchObject({ version: 1, description: '' });
  expect((await put(queue, {}, {}, '?validate_only=true')).body['code']).toBe('INVALID_CONFIG');
  const late = await put(queue, plainConfig, { 'if-match': '"9"' }, '?validate_only=true');
  expect(late.status).toBe(412);
  expect((await put(queue, plainConfig, {}, '?validate_only=false')).headers.etag).toBe('"2"');
});

test('pausing leaves the version, and writing leaves the pause', async () => {
  const queue = newName();
  await put(queue, plainConfig);
  expect((await verb(queue, 'pause')).status).toBe(204);
  expect((await verb(queue, 'pause')).status).toBe(204);
  expect((await get(queue)).body).toMatchObject({ paused: true, version: 1 });
  expect((await put(queue, plainConfig)).body).toMatchObject({ paused: true, version: 2 });
  const submitted = await server.as('submitter', {
    method: 'POST',
    path: `/v1/queues/${queue}/tasks`,
    body: { handler_ref: 'a' },
  });
  const task = await server.as('submitter', { path: `/v1/tasks/${submitted.body['id']}` });
  expect(task.body['waiting_for']).toBe('paused');
  expect((await verb(queue, 'resume')).status).toBe(204);
  expect((await get(queue)).body).toMatchObject({ paused: false, version: 2 });
});

test('a queue goes when it is empty, its succeeded tasks with it', async () => {
  const queue = newName();
  const remove = () => server.as('admin', { method: 'DELETE', path: `/v1/admin/queues/${queue}` });
  await put(queue, plainConfig);
  await buryTasks(server, 1, { queue });
  expect((await remove()).body['code']).toBe('QUEUE_NOT_EMPTY');
  const purge = { method: 'POST', path: `/v1/queues/${queue}/dlq:purge`, body: { filter: {} } };
  await server.as('admin', purge);
  await submitOne(server, queue);
  expect((await remove()).body['code']).toBe('QUEUE_NOT_EMPTY');
  const [task] = await server.store.claimDue({
    queue,
    limit: 1,
    now: server.clock.now(),
    nodeId: 'n',
    leaseExpiresAt: server.clock.now() + 1_000,
    newToken: () => 'token-of-one-claim',
    maxInFlight: 1,
    dispatchPerSecond: 0,
    fifoGroups: false,
  });
  expect((await remove()).body['code']).toBe('QUEUE_NOT_EMPTY');
  const done = await server.as('admin', {
    method: 'POST',
    path: `/v1/tasks/${task!.id}:complete`,
    headers: { 'x-queue-lease-token': 'token-of-one-claim' },
  });
  expect(done.body).toMatchObject({ status: 'SUCCEEDED' });
  expect((await remove()).status).toBe(204);
  expect((await remove()).body['code']).toBe('QUEUE_NOT_FOUND');
  expect((await server.as('admin', { path: `/v1/tasks/${task!.id}` })).status).toBe(404);
});

test('the list has the granted queues by name, with their state', async () => {
  await makeQueue(server, 'other.zoo', { callback: { url: 'https://a.example.org/hooks' } });
  await makeQueue(server, 'other.ant');
  await buryTasks(server, 1, { queue: 'other.ant' });
  const { body } = await server.as('stranger', { path: '/v1/admin/queues' });
  const list = body as unknown as { name: string; summary: Record<string, unknown> }[];
  expect(list.map(({ name }) => name)).toEqual(['other.ant', 'other.zoo']);
  expect(list[0]!.summary).toMatchObject({ dlq_depth: 1, pending: 0, in_flight: 0, version: 1 });
  expect(list[1]!.summary).toMatchObject({
    paused: false,
    oldest_pending_age_ms: 0,
    callback_url: 'https://a.example.org/hooks',
    breaker: 'closed',
  });
});

test('nothing was answered that the contract does not describe', () => {
  expect(server.differences).toEqual([]);
});

test('config: a missing secret is explained by a mistake in the newest secrets file', async () => {
  const own = await startTestServer();
  const file = join(own.directory, 'secrets.yaml');
  writeFileSync(file, 'secrets:\n  - name: new\n    vlaue: hidden\n    queues: [mail]\n');
  const request = {
    method: 'PUT',
    path: '/v1/admin/queues/mail/config',
    body: {
      ...plainConfig,
      callback: { ...plainConfig.callback, signing: { secret_refs: ['new'] } },
    },
  };
  const detail = async () => String((await own.as('root', request)).body['detail']);
  await expect.poll(detail).toMatch(/secrets\.yaml:3: .*vlaue/);
  expect(await detail()).not.toContain('hidden');
  const logged = own.log.lines.filter(({ message }) =>
    message.startsWith('failed to reload secrets'),
  );
  expect(logged).toHaveLength(1);
  expect(logged[0]!.fields).not.toHaveProperty('err');
});
