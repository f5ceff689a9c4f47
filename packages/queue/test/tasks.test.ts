import { afterAll, expect, test } from 'vitest';
import { MemoryStore } from './support/memory-store/index.js';
import type { NewTask } from '../src/storage/port/task-store.js';
import { makeQueue, newEmbeddedStore, startTestServer } from './support/server.js';
import { buryTasks, claim, end, submitOne } from './support/tasks.js';

const store = await newEmbeddedStore(afterAll);
const server = await startTestServer({ onEnd: afterAll, store });
await makeQueue(server);
await makeQueue(server, 'mail.other');

let lastUlid = 0;
const newUlid = () => `01JD3Z8Q4M7X2N5V9RTB${String(++lastUlid).padStart(6, '0')}`;
const submit = (body: unknown, queue = 'mail') =>
  server.as('submitter', { method: 'POST', path: `/v1/queues/${queue}/tasks`, body });
const batch = async (body: unknown, queue = 'mail') => {
  const path = `/v1/queues/${queue}/tasks:batch`;
  const answer = await server.as('submitter', { method: 'POST', path, body });
  expect(answer.status, answer.text).toBe(207);
  return answer.body as unknown as Record<string, Record<string, unknown>>[];
};
const getTask = (task: string) => server.as('submitter', { path: `/v1/tasks/${task}` });

test('the smallest task gets every default', async () => {
  const { status, body, headers } = await submit({ handler_ref: 'mail.send' });
  expect(status).toBe(202);
  expect(headers['idempotent-replayed']).toBeUndefined();
  const fields =
    'id queue handler_ref status payload_content_type headers priority group_key attempt ' +
    'total_attempts max_attempts redrive_count created_at updated_at next_attempt_at expires_at ' +
    'lease_expires_at completed_at dead_at dead_reason last_error submitted_by';
  expect(Object.keys(body)).toEqual(fields.split(' '));
  expect(body).toMatchObject({
    queue: 'mail',
    status: 'PENDING',
    payload_content_type: 'application/octet-stream',
    headers: {},
    priority: 4,
    group_key: null,
    attempt: 0,
    max_attempts: 15,
    expires_at: null,
    submitted_by: 'submitter',
  });
  expect(body['next_attempt_at']).toBe(body['created_at']);
  expect(body['created_at']).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  const found = await getTask(String(body['id']));
  expect(found.body).toMatchObject({ payload: '', attempts: [], waiting_for: 'dispatch' });
});

test('what is submitted comes back as it was', async () => {
  const given = {
    id: newUlid().toLowerCase(),
    handler_ref: 'billing/invoice@v2',
    payload: Buffer.from([0, 255, 128, 10]).toString('base64'),
    payload_content_type: 'text/plain; charset=utf-8',
    headers: { 'X-Empty': '', 'x-empty': 'b', Authorization: 'Bearer x', 'X-Inner': 'a b' },
    priority: 9,
    group_key: 'Äcme \u{1F600}',
    expires_at: '2999-12-31T23:59:59.99999Z',
  };
  const { body } = await submit({ ...given, run_at: '2020-01-01T00:00:00.1239+01:00' });
  const found = await getTask(given.id);
  expect(found.body).toMatchObject({
    ...given,
    id: given.id.toUpperCase(),
    // A time in the past means now; what is finer than a millisecond is cut off.
    next_attempt_at: body['created_at'],
    expires_at: '2999-12-31T23:59:59.999Z',
  });
});

test('a delay is counted from now, and a later time is kept', async () => {
  const delayed = await submit({ handler_ref: 'a', delay_ms: 60_000 });
  const created = Date.parse(String(delayed.body['created_at']));
  expect(Date.parse(String(delayed.body['next_attempt_at']))).toBe(created + 60_000);
  const at = new Date(Date.now() + 29 * 86_400_000).toISOString();
  const later = await submit({ handler_ref: 'a', run_at: at });
  expect(later.body['next_attempt_at']).toBe(at);
  expect((await getTask(String(later.body['id']))).body['status']).toBe('PENDING');
});

test('server ids only grow', async () => {
  const results = await batch(Array.from({ length: 50 }, () => ({ handler_ref: 'a' })));
  const ids = results.map(({ envelope }) => String(envelope!['id']));
  expect(ids).toEqual(ids.toSorted());
  expect(new Set(ids).size).toBe(50);
});

test('the same id again is the same task, whatever else the request says', async () => {
  const task = newUlid();
  const first = await submit({ id: task, handler_ref: 'a' });
  const again = await submit({ id: task.toLowerCase(), handler_ref: 'b', priority: 1 });
  expect(again.status).toBe(202);
  expect(again.headers['idempotent-replayed']).toBe('true');
  expect(again.body).toEqual(first.body);
  const elsewhere = await submit({ id: task, handler_ref: 'a' }, 'mail.other');
  expect([elsewhere.status, elsewhere.body['code']]).toEqual([409, 'ID_CONFLICT']);
});

test('an id that was used is answered in every status', async () => {
  await makeQueue(server, 'mail.ends');
  const [dead] = await buryTasks(server, 1, { queue: 'mail.ends' });
  const again = await submit({ id: dead, handler_ref: 'a' }, 'mail.ends');
  expect(again.body).toMatchObject({ id: dead, status: 'DEAD' });
  const done = await submitOne(server, 'mail.ends');
  const [task] = await claim(server.store, 'mail.ends', server.clock.now());
  const running = await submit({ id: done, handler_ref: 'a' }, 'mail.ends');
  expect(running.body).toMatchObject({ id: done, status: 'IN_FLIGHT', attempt: 1 });
  expect(running.body['lease_expires_at']).not.toBeNull();
  await end(server.store, task!, { kind: 'succeeded' });
  const ended = await submit({ id: done, handler_ref: 'a' }, 'mail.ends');
  expect(ended.body).toMatchObject({ id: done, status: 'SUCCEEDED' });
});

test('for a day a purged task leaves a tombstone, and nothing runs', async () => {
  await makeQueue(server, 'mail.purged');
  const [dead] = await buryTasks(server, 1, { queue: 'mail.purged' });
  const path = '/v1/queues/mail.purged/dlq:purge';
  await server.as('operator', { method: 'POST', path, body: { ids: [dead] } });
  const again = await submit({ id: dead, handler_ref: 'x' }, 'mail.purged');
  expect(again.status).toBe(202);
  expect(again.headers['idempotent-replayed']).toBe('true');
  expect(again.body).toEqual({
    id: dead,
    queue: 'mail.purged',
    handler_ref: 'mail.send',
    status: 'DEAD',
    purged: true,
  });
  expect((await submit({ id: dead, handler_ref: 'x' })).body['code']).toBe('ID_CONFLICT');
  expect((await getTask(dead!)).body['code']).toBe('TASK_NOT_FOUND');
  const results = await batch([{ id: dead, handler_ref: 'x' }], 'mail.purged');
  expect(results[0]).toMatchObject({ status: 202, envelope: { purged: true } });
});

test('a bad item of a batch never blocks the others', async () => {
  const taken = newUlid();
  await submit({ id: taken, handler_ref: 'a' }, 'mail.other');
  const twice = newUlid();
  const results = await batch([
    { handler_ref: 'a' },
    { handler_ref: 'a', payload: '!' },
    null,
    { id: taken, handler_ref: 'a' },
    { id: twice, handler_ref: 'first' },
    { id: twice.toLowerCase(), handler_ref: 'second' },
    { handler_ref: 'a', prioritty: 1 },
  ]);
  expect(results.map(({ index, status }) => [index, status])).toEqual([
    [0, 202],
    [1, 422],
    [2, 422],
    [3, 409],
    [4, 202],
    [5, 202],
    [6, 422],
  ]);
  expect(results[3]).toEqual({
    index: 3,
    status: 409,
    error: {
      code: 'ID_CONFLICT',
      status: 409,
      title: 'Id conflict',
      detail: `The id ${taken} is in use in another queue; submit with a new one.`,
    },
  });
  expect(results[5]!['envelope']).toMatchObject({ id: twice, handler_ref: 'first' });
  expect(results[6]!['error']).toMatchObject({ errors: [{ pointer: '/prioritty' }] });
});

test('an empty batch is fine, and a full one is one commit', async () => {
  expect(await batch([])).toEqual([]);
  await makeQueue(server, 'mail.full');
  const results = await batch(
    Array.from({ length: 1_000 }, () => ({ handler_ref: 'a' })),
    'mail.full',
  );
  expect(results).toHaveLength(1_000);
  const stats = await server.as('submitter', { path: '/v1/queues/mail.full/stats' });
  expect(stats.body).toMatchObject({ pending: 1_000, in_flight: 0, dlq_depth: 0 });
});

test('a queue that is deleted while a task comes in takes none', async () => {
  class VanishingStore extends MemoryStore {
    override async insertTasks(tasks: readonly NewTask[]) {
      return tasks.map(() => ({ kind: 'queue_not_found' }) as const);
    }
  }
  const own = await startTestServer({ store: new VanishingStore() });
  await makeQueue(own);
  for (const [verb, body] of [
    ['tasks', { handler_ref: 'a' }],
    ['tasks:batch', [{ handler_ref: 'a' }, {}]],
  ] as const) {
    const answer = await own.as('root', { method: 'POST', path: `/v1/queues/mail/${verb}`, body });
    expect([answer.status, answer.body['code']]).toEqual([404, 'QUEUE_NOT_FOUND']);
  }
});

test('a payload may be as large as the queue allows, to the byte', async () => {
  await makeQueue(server, 'mail.large', { limits: { max_payload_bytes: 8_388_608 } });
  const payload = Buffer.alloc(8_388_608, 'x').toString('base64');
  const { status, body } = await submit({ handler_ref: 'a', payload }, 'mail.large');
  expect(status).toBe(202);
  const found = await getTask(String(body['id']));
  expect(found.body['payload']).toBe(payload);
  const more = Buffer.alloc(8_388_609, 'x').toString('base64');
  expect((await submit({ handler_ref: 'a', payload: more }, 'mail.large')).status).toBe(413);
});

test('stats report how long the oldest task has been due', async () => {
  await makeQueue(server, 'mail.stats');
  const path = '/v1/queues/mail.stats/stats';
  const counts = { pending: 0, in_flight: 0, dlq_depth: 0, oldest_pending_age_ms: 0 };
  const totals = { succeeded_total: 0, failed_total: 0, dead_total: 0, rate_per_second: 0 };
  const state = { delayed: 0, state: 'running', breakers: [], blocked: 0, suspended: 0 };
  const idle = { ...counts, ...totals, ...state };
  expect((await server.as('submitter', { path })).body).toEqual(idle);
  await submitOne(server, 'mail.stats', { delay_ms: 60_000 });
  await buryTasks(server, 1, { queue: 'mail.stats' });
  expect((await server.as('submitter', { path })).body).toMatchObject({
    pending: 1,
    delayed: 1,
    oldest_pending_age_ms: 0,
  });
  await submitOne(server, 'mail.stats', {});
  server.clock.aheadMs += 5_000;
  const { body } = await server.as('submitter', { path });
  server.clock.aheadMs -= 5_000;
  expect(body).toMatchObject({ pending: 2, delayed: 1, dlq_depth: 1 });
  expect(body['oldest_pending_age_ms']).toBeGreaterThanOrEqual(5_000);
  expect(body['oldest_pending_age_ms']).toBeLessThan(60_000);
});

test('nothing was answered that the contract does not describe', () => {
  expect(server.differences).toEqual([]);
});
