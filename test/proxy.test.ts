import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startDaemon, type TestDaemon } from '../packages/daemon/test/support/daemon.js';
import { Stores } from '../packages/dashboard/test/support/stores.js';

/** The daemon's proxy in front of a real queue server and a real database. */
const stores = new Stores();
let daemon: TestDaemon;

beforeAll(async () => {
  await stores.start();
  daemon = await startDaemon({ flags: stores.flags });
});
afterAll(async () => {
  await daemon.dispose();
  await stores.stop();
});

const queue = '/api/v1/proxy/queue/v1';
const db = '/api/v1/proxy/db/v1';

test('a queue is read, fed, paused and its dead are counted without a token of its own', async () => {
  await stores.makeQueue('mail');
  const [item] = await daemon.api.ok('GET', `${queue}/admin/queues`);
  expect(item).toMatchObject({ name: 'mail', summary: { paused: false, pending: 0 } });
  const config = await daemon.api.ok('GET', `${queue}/admin/queues/mail/config`);
  expect(config.callback.url).toBe(stores.callbackUrl);

  const path = `${queue}/queues/mail/tasks`;
  const body = { handler_ref: 'refuse.it' };
  const submitted = await daemon.api.send({ method: 'POST', path, body });
  expect(submitted.status).toBe(202);
  await vi.waitFor(async () => {
    const task = await daemon.api.ok('GET', `${queue}/tasks/${submitted.json.id}`);
    expect(task).toMatchObject({ status: 'DEAD', submitted_by: 'root' });
  }, 60_000);

  const trial = { filter: {}, dry_run: true };
  const counted = await daemon.api.ok('POST', `${queue}/queues/mail/dlq:redrive`, trial);
  expect(counted).toEqual({ count: 1 });
  const { groups } = await daemon.api.ok('GET', `${queue}/queues/mail/dlq:groups`);
  expect(groups).toMatchObject([{ error_type: 'HTTP_4XX', http_status: 404, count: 1 }]);
  const page = await daemon.api.ok('GET', `${queue}/queues/mail/dlq?limit=1&error_type=HTTP_4XX`);
  expect(page.tasks).toMatchObject([{ id: submitted.json.id }]);

  const pause = { method: 'POST', path: `${queue}/admin/queues/mail:pause` };
  expect((await daemon.api.send(pause)).status).toBe(204);
  expect((await stores.queue('GET', '/v1/admin/queues/mail/config')).paused).toBe(true);
});

test('a refusal of the queue server is handed on as it is', async () => {
  const path = `${queue}/queues/nothing/tasks`;
  const reply = await daemon.api.send({ method: 'POST', path, body: { handler_ref: 'x' } });
  expect([reply.status, reply.json.code]).toEqual([404, 'QUEUE_NOT_FOUND']);
  expect(reply.headers['content-type']).toBe('application/problem+json');
});

test('records are made, found, watched, changed by revision and deleted', async () => {
  const made = await daemon.api.ok('POST', `${db}/people/keys`, {
    key: 'a/b:c',
    data: { name: 'Ada', age: 36 },
  });
  const { id } = made.record;
  const byKey = await daemon.api.ok('GET', `${db}/people/keys/a%2Fb%3Ac`);
  expect(byKey.record.id).toBe(id);
  const { records, plan } = await daemon.api.ok('POST', `${db}/people/records:find`, {
    filter: { field: 'age', op: 'gt', value: 30 },
    explain: true,
  });
  expect([records.length, plan.index]).toEqual([1, 'age']);

  const watching = await fetch(`${daemon.url}${db}/people/records:watch`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  });
  expect(watching.headers.get('content-type')).toBe('application/x-ndjson');
  const reader = watching.body!.pipeThrough(new TextDecoderStream()).getReader();

  const update = `${db}/people/records/${id}:updateIfRev`;
  const changed = await daemon.api.ok('POST', update, { expected_rev: 1, data: { age: 37 } });
  expect(changed.record.rev).toBe(2);
  let seen = '';
  while (!seen.includes('CHANGE_OP_UPDATE')) seen += (await reader.read()).value ?? '';
  await reader.cancel();

  const late = { method: 'POST', path: update, body: { expected_rev: 1, data: {} } };
  const refused = await daemon.api.send(late);
  expect([refused.status, refused.json.details[0].reason]).toEqual([409, 'REV_MISMATCH']);
  await daemon.api.ok('DELETE', `${db}/people/records/${id}`);
  const { collections } = await daemon.api.ok(
    'GET',
    `${db}/admin/replication?include_collections=true`,
  );
  expect(collections).toMatchObject([{ name: 'people', records: 0 }]);
});

test('a token that the queue server does not know is reported as what it is', async () => {
  const stranger = await startDaemon({ flags: { ...stores.flags, 'queue-token': 'wrong' } });
  const { detail } = await stranger.api.refused(
    { path: `${queue}/admin/queues` },
    502,
    'UPSTREAM_REFUSED',
  );
  expect(detail).toContain('queue.token');
  expect(detail).not.toContain('wrong');
  await stranger.dispose();
});
