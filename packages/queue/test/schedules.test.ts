import { afterAll, describe, expect, test } from 'vitest';
import { makeQueue, newEmbeddedStore, startTestServer } from './support/server.js';
import { claim, submitOne } from './support/tasks.js';

const store = await newEmbeddedStore(afterAll);
const server = await startTestServer({ onEnd: afterAll, store });
await makeQueue(server);

const base = '/v1/queues/mail/schedules';
const send = (method: string, path: string, body?: unknown) =>
  server.as('operator', { method, path: `${base}${path}`, ...(body !== undefined && { body }) });
const put = (name: string, body: unknown) => send('PUT', `/${name}`, body);
const task = { handler_ref: 'report.build' };
const ok = async (call: ReturnType<typeof send>) => {
  const answer = await call;
  expect(answer.status, answer.text).toBe(200);
  expect(server.differences).toEqual([]);
  return answer.body;
};

test('a schedule gets every default, and is read and listed as it was written', async () => {
  const body = await ok(put('nightly', { cron: '0 3 * * *', task }));
  expect(body).toEqual({
    name: 'nightly',
    queue: 'mail',
    cron: '0 3 * * *',
    timezone: 'UTC',
    task,
    overlap: 'skip',
    catch_up: 'last',
    jitter_ms: 0,
    description: '',
    next_run_at: expect.stringMatching(/T03:00:00\.000Z$/) as string,
    last_run_at: null,
    last_task_id: null,
    paused: false,
    version: 1,
  });
  expect(await ok(send('GET', '/nightly'))).toEqual(body);
  expect(await ok(send('GET', ''))).toEqual({ schedules: [body], next_cursor: '' });
  const changed = await ok(put('nightly', { cron: '0 3 * * *', task, description: 'x' }));
  expect(changed).toMatchObject({ version: 2, description: 'x', next_run_at: body['next_run_at'] });
  expect((await send('DELETE', '/nightly')).status).toBe(204);
  expect((await send('DELETE', '/nightly')).body).toMatchObject({ code: 'SCHEDULE_NOT_FOUND' });
});

test('list: pages by name, without payloads', async () => {
  await makeQueue(server, 'mail.pages');
  const path = '/v1/queues/mail.pages/schedules';
  const payload = Buffer.alloc(700_000).toString('base64');
  for (const name of ['b', 'a', 'd', 'c', 'f', 'e', 'h', 'g']) {
    const body = { cron: '0 3 * * *', task: { ...task, payload } };
    expect(
      (await server.as('operator', { method: 'PUT', path: `${path}/${name}`, body })).status,
    ).toBe(200);
  }
  const pages: string[][] = [];
  const all = async (query: string) => {
    pages.length = 0;
    let cursor = '';
    do {
      const found = await server.as('operator', { path: `${path}?${query}&cursor=${cursor}` });
      expect(found.status, found.text).toBe(200);
      const { schedules } = found.body as unknown as {
        schedules: { name: string; task: object }[];
      };
      expect(schedules.map((schedule) => schedule.task)).toEqual(schedules.map(() => task));
      pages.push(schedules.map(({ name }) => name));
      cursor = String(found.body['next_cursor']);
    } while (cursor !== '');
    return pages.flat().join('');
  };
  expect(await all('limit=3')).toBe('abcdefgh');
  expect(pages[0]).toEqual(['a', 'b', 'c']);
  // A page ends after 4 MiB of stored schedules, also below its limit.
  expect(await all('limit=500')).toBe('abcdefgh');
  expect(pages.length).toBe(2);
  const one = await server.as('operator', { path: `${path}/a` });
  expect(one.body).toMatchObject({ task: { payload } });
});

test('put: refuses more schedules or bytes than a queue may have', async () => {
  const settings = { max_schedules: 3, max_schedule_bytes: 2_000 };
  const limited = await startTestServer({ settings });
  await makeQueue(limited);
  const write = (name: string, payload = '') => {
    const body = { cron: '0 3 * * *', task: { ...task, payload } };
    return limited.as('operator', { method: 'PUT', path: `${base}/${name}`, body });
  };
  const answers = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((name) => write(name)));
  const statuses = answers.map(({ status }) => String(status));
  expect(statuses.toSorted()).toEqual(['200', '200', '200', '422', '422']);
  const refused = answers.find(({ status }) => status === 422)!;
  expect(refused.body).toMatchObject({
    code: 'INVALID_SCHEDULE',
    detail: 'The queue mail has 3 schedules, the limit is 3. Delete one first.',
  });
  const [first] = (await limited.as('operator', { path: base })).body['schedules'] as [
    { name: string },
  ];
  expect((await write(first.name)).status).toBe(200);
  const large = await write(first.name, 'A'.repeat(2_000));
  expect(large.body).toMatchObject({ code: 'INVALID_SCHEDULE' });
  expect(large.text).toContain('the limit is 2000');
});

test('read-only fields may be sent back as they were read, and not otherwise', async () => {
  const body = await ok(put('edited', { cron: '0 3 * * *', task }));
  const again = await ok(put('edited', { ...body, description: 'x' }));
  expect(again).toEqual({ ...body, description: 'x', version: 2 });
  const outdated = await put('edited', { ...body, paused: true });
  expect(outdated.body).toMatchObject({
    code: 'INVALID_SCHEDULE',
    errors: [
      { pointer: '/paused', message: 'is read-only (it is false); leave it out' },
      { pointer: '/version', message: 'is read-only (it is 2); leave it out' },
    ],
  });
  const copied = await put('copied', { ...again, name: 'copied', queue: 'mail' });
  expect(copied.body).toMatchObject({ code: 'INVALID_SCHEDULE' });
  expect((await send('DELETE', '/edited')).status).toBe(204);
});

test('the next run is shown in UTC, also around clock changes', async () => {
  const timezone = 'Europe/Berlin';
  const gap = await ok(put('gap', { cron: '30 2 28 3 *', timezone, task }));
  const doubled = await ok(put('doubled', { cron: '30 2 31 10 *', timezone, task }));
  const year = (text: unknown) => Number(String(text).slice(0, 4));
  // Only some years have the clock change on this day; the tests of the times cover the rest.
  for (const shown of [gap, doubled]) expect(year(shown['next_run_at'])).toBeGreaterThan(2025);
  for (const name of ['gap', 'doubled']) await send('DELETE', `/${name}`);
});

test('a schedule runs by the clock', async () => {
  await ok(put('tick', { every_ms: 1_000, task: { ...task, payload: 'e30=', priority: 9 } }));
  await expect.poll(async () => (await ok(send('GET', '/tick')))['last_task_id']).not.toBeNull();
  const [claimed] = await claim(store, 'mail', server.clock.now());
  expect(claimed).toMatchObject({ handlerRef: 'report.build', submittedBy: 'operator' });
  expect(claimed!.id).toBe((await ok(send('GET', '/tick')))['last_task_id']);
  expect((await send('DELETE', '/tick')).status).toBe(204);
});

test('run-now submits a task and leaves the next run, also while paused', async () => {
  const before = await ok(put('manual', { cron: '0 3 * * *', task }));
  const first = await ok(send('POST', '/manual:run-now'));
  expect(first).toMatchObject({ next_run_at: before['next_run_at'], version: 1 });
  const paused = await ok(send('POST', '/manual:pause'));
  expect(paused).toMatchObject({ paused: true, next_run_at: null });
  expect(await ok(send('POST', '/manual:pause'))).toEqual(paused);
  const second = await ok(send('POST', '/manual:run-now'));
  expect(second['last_task_id']).not.toBe(first['last_task_id']);
  expect(second).toMatchObject({ paused: true, next_run_at: null });
  const resumed = await ok(send('POST', '/manual:resume'));
  expect(resumed).toMatchObject({ paused: false, next_run_at: before['next_run_at'] });
  for (const { last_task_id: id } of [first, second]) {
    const found = await server.as('operator', { path: `/v1/tasks/${String(id)}` });
    expect(found.body).toMatchObject({ handler_ref: 'report.build', status: 'PENDING' });
  }
  expect((await send('DELETE', '/manual')).status).toBe(204);
});

test('run-now of a schedule of a full queue is refused', async () => {
  await makeQueue(server, 'mail.full', { limits: { max_pending: 1 } });
  await submitOne(server, 'mail.full');
  const path = '/v1/queues/mail.full/schedules/a';
  const body = { every_ms: 3_600_000, task };
  await server.as('operator', { method: 'PUT', path, body });
  const answer = await server.as('operator', { method: 'POST', path: `${path}:run-now` });
  expect(answer).toMatchObject({ status: 429, body: { code: 'RATE_LIMITED' } });
  expect((await server.as('operator', { path })).body).toMatchObject({ last_task_id: null });
});

const cron = '0 3 * * *';

describe('invalid schedules', () => {
  test.each<[string, unknown, string]>([
    ['without a timing', { task }, ''],
    ['with both timings', { cron, every_ms: 1_000, task }, ''],
    ['with a short interval', { every_ms: 999, task }, '/every_ms'],
    ['with a bad expression', { cron: '61 * * * *', task }, '/cron'],
    ['with an expression that never matches', { cron: '0 0 30 2 *', task }, '/cron'],
    ['with an unknown zone', { cron, timezone: 'Europe/Atlantis', task }, '/timezone'],
    ['without a task', { cron }, ''],
    ['with a task without a handler', { cron, task: {} }, '/task'],
    ['with an id in its task', { cron, task: { ...task, id: '0'.repeat(26) } }, '/task'],
    ['with a time in its task', { cron, task: { ...task, delay_ms: 1 } }, '/task'],
    [
      'with a payload that is not base64',
      { cron, task: { ...task, payload: 'a' } },
      '/task/payload',
    ],
    ['with an unknown key', { cron, task, overlaps: 'skip' }, ''],
    ['with an unknown overlap', { cron, task, overlap: 'queue' }, '/overlap'],
    ['with an unknown catch_up', { cron, task, catch_up: 'first' }, '/catch_up'],
    ['with a negative jitter', { cron, task, jitter_ms: -1 }, '/jitter_ms'],
    ['with read-only fields', { cron, task, paused: true }, ''],
    ['that is no object', 5, ''],
  ])('a schedule %s is refused', async (_what, body, pointer) => {
    const answer = await put('bad', body);
    expect(answer.status).toBe(422);
    expect(answer.body).toMatchObject({ code: 'INVALID_SCHEDULE' });
    const errors = answer.body['errors'] as { pointer: string }[];
    expect(errors[0]!.pointer.startsWith(pointer), answer.text).toBe(true);
    expect((await send('GET', '/bad')).status).toBe(404);
  });

  test('a name that cannot be a schedule is refused', async () => {
    expect(await put('a%20b', { cron, task })).toMatchObject({
      status: 422,
      body: { code: 'INVALID_SCHEDULE' },
    });
    expect(await send('GET', '/a%20b')).toMatchObject({ status: 404 });
  });

  test('a payload above the limit of the queue is refused', async () => {
    const payload = Buffer.alloc(1_048_577).toString('base64');
    const answer = await put('big', { cron, task: { ...task, payload } });
    expect(answer).toMatchObject({ status: 413, body: { code: 'PAYLOAD_TOO_LARGE' } });
  });
});

test('schedules need the role operator', async () => {
  for (const [who, status] of [
    ['submitter', 403],
    ['stranger', 403],
    ['operator', 200],
    ['admin', 200],
  ] as const) {
    expect((await server.as(who, { path: base })).status).toBe(status);
  }
});

test('a deleted queue takes its schedules with it', async () => {
  await makeQueue(server, 'mail.gone');
  const path = '/v1/queues/mail.gone/schedules';
  await server.as('operator', { method: 'PUT', path: `${path}/a`, body: { cron, task } });
  await server.as('admin', { method: 'DELETE', path: '/v1/admin/queues/mail.gone' });
  await makeQueue(server, 'mail.gone');
  expect((await server.as('operator', { path })).body).toEqual({ schedules: [], next_cursor: '' });
});
