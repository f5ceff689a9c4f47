import { afterAll, expect, test } from 'vitest';
import { newJobState } from '../src/core/job.js';
import { makeQueue, newEmbeddedStore, startTestServer } from './support/server.js';
import { buryTasks } from './support/tasks.js';

const store = await newEmbeddedStore(afterAll);
const server = await startTestServer({ onEnd: afterAll, store });
await makeQueue(server);

const post = (path: string, body?: unknown) =>
  server.as('operator', { method: 'POST', path, ...(body !== undefined && { body }) });
const start = async (action: 'redrive' | 'purge', body: unknown, queue = 'mail') => {
  const answer = await post(`/v1/queues/${queue}/dlq:${action}?async=true`, body);
  expect(answer.status, answer.text).toBe(202);
  return (answer.body as { job: { id: string } & Record<string, unknown> }).job;
};
const job = async (id: string) => {
  const answer = await server.as('operator', { path: `/v1/jobs/${id}` });
  expect(answer.status, answer.text).toBe(200);
  return (answer.body as { job: Record<string, unknown> }).job;
};
const ended = (id: string) =>
  expect.poll(async () => (await job(id))['status']).not.toBe('running');

test('an asynchronous purge answers with a job that ends by itself', async () => {
  await buryTasks(server, 5);
  const created = await start('purge', { filter: {} });
  expect(created).toMatchObject({
    queue: 'mail',
    action: 'purge',
    selector: { filter: {} },
    status: 'running',
    count: 0,
    finished_at: null,
  });
  await ended(created.id);
  const done = await job(created.id.toLowerCase());
  expect(done).toMatchObject({ status: 'done', count: 5, created_at: created['created_at'] });
  expect(done['finished_at']).toEqual(expect.any(String));
  const audit = await server.as('root', { path: '/v1/admin/audit?queue=mail' });
  const acts = audit.body['records'] as {
    action: string;
    count: number | null;
    selector: object;
  }[];
  expect(acts.slice(0, 2)).toMatchObject([
    { action: 'purge', count: 5, principal: 'operator', selector: { job: created.id } },
    { action: 'purge', count: null, principal: 'operator', selector: { filter: {} } },
  ]);
  expect(server.differences).toEqual([]);
});

test('an asynchronous redrive takes ids and a filter', async () => {
  const [first] = await buryTasks(server, 3);
  const one = await start('redrive', { ids: [first!.toLowerCase()] });
  await ended(one.id);
  expect(await job(one.id)).toMatchObject({ count: 1, action: 'redrive' });
  const rest = await start('redrive', { filter: {}, rate_per_second: 0 });
  await ended(rest.id);
  expect(await job(rest.id)).toMatchObject({ status: 'done', count: 2 });
  const list = await server.as('operator', { path: '/v1/queues/mail/jobs' });
  const ids = (list.body['jobs'] as { id: string }[]).map(({ id }) => id);
  expect(ids.slice(0, 2)).toEqual([rest.id, one.id]);
});

test('a cancelled job has ended, and cannot be cancelled again', async () => {
  const now = server.clock.now();
  const key = { table: 'job', queue: 'mail', key: '01JD3Z8Q4M7X2N5V9RTBKWCH6E' } as const;
  const body = { action: 'purge', selector: {}, target: { filter: {} }, gapMs: 0, by: 'root' };
  const state = { ...newJobState, count: 7, owner: 'another', ownedUntil: now + 3_600_000 };
  await store.writeRows({ puts: [{ ...key, ifRevision: 0, body, value: state }], now });
  const answer = await post(`/v1/jobs/${key.key}:cancel`);
  expect(answer).toMatchObject({ status: 200, body: { job: { status: 'cancelled', count: 7 } } });
  expect(await post(`/v1/jobs/${key.key}:cancel`)).toMatchObject({
    status: 409,
    body: { code: 'JOB_FINISHED' },
  });
  const audit = await server.as('root', { path: '/v1/admin/audit?limit=1' });
  expect(audit.body['records']).toMatchObject([
    { action: 'purge', count: 7, principal: 'operator' },
  ]);
});

test('what is wrong with a request is refused, and no job is created', async () => {
  const path = '/v1/queues/mail/dlq:purge?async=true';
  const before = await server.as('operator', { path: '/v1/queues/mail/jobs' });
  for (const body of [{}, { filter: {}, ids: [] }, { filter: {}, dry_run: true }]) {
    expect((await post(path, body)).body).toMatchObject({ code: 'INVALID_SELECTOR' });
  }
  expect((await post('/v1/queues/mail/dlq:purge?async=2', { filter: {} })).body).toMatchObject({
    code: 'INVALID_QUERY',
  });
  expect((await server.as('operator', { path: '/v1/queues/mail/jobs' })).body).toEqual(before.body);
  for (const id of ['01JD3Z8Q4M7X2N5V9RTBKWCH6F', 'x']) {
    expect((await server.as('operator', { path: `/v1/jobs/${id}` })).body).toMatchObject({
      code: 'JOB_NOT_FOUND',
    });
  }
});

test('a call without async still answers with a count', async () => {
  await makeQueue(server, 'mail.sync');
  await buryTasks(server, 2, { queue: 'mail.sync' });
  const path = '/v1/queues/mail.sync/dlq:purge?async=false&other=1';
  const answer = await post(path, { filter: {} });
  expect(answer).toMatchObject({ status: 200, body: { count: 2 } });
});

test('a job is shown to operators of its queue alone', async () => {
  await makeQueue(server, 'other.jobs');
  const path = '/v1/queues/other.jobs/dlq:purge?async=true';
  const answer = await server.as('root', { method: 'POST', path, body: { filter: {} } });
  const { id } = (answer.body as { job: { id: string } }).job;
  for (const who of ['operator', 'submitter', 'nobody'] as const) {
    // As if it did not exist.
    const answer = await server.as(who, { path: `/v1/jobs/${id}` });
    expect([answer.status, answer.body['code']]).toEqual([404, 'JOB_NOT_FOUND']);
  }
  expect((await server.as('stranger', { path: `/v1/jobs/${id}` })).status).toBe(200);
});
