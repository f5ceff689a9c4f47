import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { beforeAll, describe, expect, test } from 'vitest';
import { createDelivery } from '../src/delivery/index.js';
import { openPostgresStore } from '../src/storage/postgres/open.js';
import { startPostgres } from './postgres/postgres-server.js';
import {
  endWithFile,
  makeQueue,
  newEmbeddedStore,
  startTestServer,
  type TestServer,
} from './support/server.js';

const onEnd = endWithFile();
const openStore = async (kind: string) => {
  if (kind === 'embedded') return newEmbeddedStore(onEnd);
  const postgres = await startPostgres();
  onEnd(() => postgres.remove());
  const world = { clock: systemClock, random: systemRandom, log: silentLog };
  return openPostgresStore(await postgres.database('options'), world);
};

const name = (kind: string) => `tasks with options on the ${kind} store`;
describe(name('embedded'), () => testOptions('embedded'));
describe(name('postgres'), { tags: 'campaign-store' }, () => testOptions('postgres'));

function testOptions(kind: string): void {
  let server: TestServer;
  beforeAll(async () => {
    const store = await openStore(kind);
    server = await startTestServer({ onEnd, store, createDelivery });
  });

  const send = async (method: string, path: string, body?: object) => {
    const answer = await server.as('root', { method, path, ...(body && { body }) });
    return { status: answer.status, body: answer.body as any };
  };
  const post = (path: string, body: object = {}) => send('POST', path, body);
  const queue = (name: string, config: object = {}) =>
    makeQueue(server, name, { callback: { protocol: 'pull' }, ...config });
  const submit = async (name: string, body: object = {}) =>
    (await post(`/v1/queues/${name}/tasks`, { handler_ref: 'h', ...body })).body;
  const claim = async (name: string, body: object = {}) =>
    (await post(`/v1/queues/${name}/tasks:claim`, { worker: 'w', limit: 10, ...body })).body.tasks;
  const fail = (name: string, { id, lease_token }: any, item: object = {}) =>
    post(`/v1/queues/${name}/tasks:settle`, {
      items: [{ id, lease_token, outcome: 'fail', ...item }],
    });
  const get = async (id: string) => (await send('GET', `/v1/tasks/${id}`)).body;

  test('a submit, a batch and a schedule take them, and lookups show them', async () => {
    await queue('mail');
    const options = {
      max_attempts: 2,
      backoff: { kind: 'fixed', ms: 60_000, max_ms: 60_000, jitter: 0 },
      timeout_ms: 5_000,
      retain_ms: 3_600_000,
      labels: ['gpu', 'eu'],
    };
    const task = await submit('mail', options);
    expect(task).toMatchObject(options);
    expect(await get(task.id)).toMatchObject(options);
    const batch = await post('/v1/queues/mail/tasks:batch', [{ handler_ref: 'h', ...options }]);
    expect(batch.body[0].envelope).toMatchObject(options);
    const schedule = '/v1/queues/mail/schedules/nightly';
    const written = await send('PUT', schedule, {
      every_ms: 3_600_000,
      task: { handler_ref: 's', ...options },
    });
    expect(written.body.task).toMatchObject(options);
    const run = await post(`${schedule}:run-now`);
    expect(await get(run.body.last_task_id)).toMatchObject(options);
    const [first] = await claim('mail', { labels: ['gpu', 'eu'], limit: 1 });
    expect(first).toMatchObject(options);
    await fail('mail', first);
    const failed = await get(first.id);
    const delay = Date.parse(failed.next_attempt_at) - Date.parse(failed.attempts[0].ended_at);
    expect(delay).toBe(60_000);
    await post(`/v1/tasks/${first.id}:run-now`);
    const rest = await claim('mail', { labels: ['gpu', 'eu'] });
    const again = rest.find(({ id }: any) => id === first.id);
    await fail('mail', again);
    expect(await get(first.id)).toMatchObject({
      status: 'DEAD',
      dead_reason: 'ATTEMPTS_EXHAUSTED',
      max_attempts: 2,
    });
    expect(server.differences).toEqual([]);
  });

  test('labels decide who may claim; more than 10 are refused', async () => {
    await queue('mail.labels');
    const gpu = await submit('mail.labels', { labels: ['gpu'] });
    const plain = await submit('mail.labels');
    expect((await claim('mail.labels')).map(({ id }: any) => id)).toEqual([plain.id]);
    const waiting = claim('mail.labels', { labels: ['gpu', 'x'], wait_ms: 10_000 });
    expect((await waiting).map(({ id }: any) => id)).toEqual([gpu.id]);
    const labels = Array.from({ length: 11 }, (_, i) => `l${i}`);
    const refused = await post('/v1/queues/mail.labels/tasks', { handler_ref: 'h', labels });
    expect([refused.status, refused.body.code]).toEqual([422, 'INVALID_TASK']);
  });

  test('a waiting claim with other labels is served beside one that finds nothing', async () => {
    await queue('mail.waits');
    const body = { wait_ms: 20_000, limit: 1 };
    const none = claim('mail.waits', { ...body, labels: ['cpu'] });
    const gpu = claim('mail.waits', { ...body, labels: ['gpu'] });
    const task = await submit('mail.waits', { labels: ['gpu'] });
    expect((await gpu)[0].id).toBe(task.id);
    const plain = await submit('mail.waits');
    expect((await none)[0].id).toBe(plain.id);
  });

  test('debounce_ms needs a unique key, and the last payload wins', async () => {
    await queue('mail.debounce');
    const path = '/v1/queues/mail.debounce/tasks';
    const refused = await post(path, { handler_ref: 'h', debounce_ms: 100 });
    expect([refused.status, refused.body.code]).toEqual([422, 'INVALID_TASK']);
    const key = { unique_key: 'k', debounce_ms: 300 };
    const first = await submit('mail.debounce', { ...key, payload: 'b25l' });
    const second = await submit('mail.debounce', { ...key, payload: 'dHdv' });
    expect(second.id).toBe(first.id);
    const [task] = await claim('mail.debounce', { wait_ms: 20_000 });
    expect([task.id, task.payload]).toEqual([first.id, 'dHdv']);
    const next = await submit('mail.debounce', { ...key, payload: 'dHdv' });
    expect(next.id).not.toBe(first.id);
  });

  test('PATCH changes priority and payload of a pending task, and no other', async () => {
    await queue('mail.update');
    const { id } = await submit('mail.update', { payload: 'b25l' });
    const change = { priority: 9, payload: 'dHdv', payload_content_type: 'text/plain' };
    const changed = await send('PATCH', `/v1/tasks/${id}`, change);
    expect(changed).toMatchObject({ status: 200, body: { priority: 9 } });
    expect(await get(id)).toMatchObject(change);
    const bad = await send('PATCH', `/v1/tasks/${id}`, { payload: '!' });
    expect([bad.status, bad.body.code]).toEqual([422, 'INVALID_TASK']);
    const [task] = await claim('mail.update');
    const path = `/v1/tasks/${id}`;
    const code = async () => {
      const { status, body } = await send('PATCH', path, { priority: 1 });
      return [status, body.code];
    };
    expect(await code()).toEqual([409, 'TASK_NOT_PENDING']);
    await fail('mail.update', task, { retry: false });
    expect(await code()).toEqual([409, 'TASK_NOT_PENDING']);
  });

  test('a worker decides the delay', async () => {
    await queue('mail.decide', { retry: { initial_backoff_ms: 600_000, max_backoff_ms: 600_000 } });
    await submit('mail.decide');
    const [task] = await claim('mail.decide');
    await fail('mail.decide', task, { delay_ms: 10 });
    const [again] = await claim('mail.decide', { wait_ms: 20_000 });
    expect(again.attempt).toBe(2);
  });

  test('max_in_flight_per_group: this many of a group run, and waiting_for says so', async () => {
    await queue('mail.groups', { limits: { max_in_flight_per_group: 2 } });
    for (let i = 0; i < 4; i++) await submit('mail.groups', { group_key: 'a' });
    const other = await submit('mail.groups', { group_key: 'b' });
    const claimed = await claim('mail.groups');
    expect(claimed).toHaveLength(3);
    expect(claimed.map(({ id }: any) => id)).toContain(other.id);
    const list = await send('GET', '/v1/queues/mail.groups/tasks?status=PENDING');
    expect(list.body.tasks.map(({ waiting_for }: any) => waiting_for)).toEqual(['group', 'group']);
    const { id, lease_token } = claimed.find(({ group_key }: any) => group_key === 'a');
    const waiting = claim('mail.groups', { wait_ms: 20_000 });
    await post('/v1/queues/mail.groups/tasks:settle', {
      items: [{ id, lease_token, outcome: 'complete' }],
    });
    expect(await waiting).toHaveLength(1);
  });

  test('retain_ms: a finished task is deleted after its own time', async () => {
    await queue('mail.retain');
    await submit('mail.retain', { retain_ms: 10 });
    const [{ id, lease_token }] = await claim('mail.retain');
    await post('/v1/queues/mail.retain/tasks:settle', {
      items: [{ id, lease_token, outcome: 'complete' }],
    });
    const gone = async () => (await send('GET', `/v1/tasks/${id}`)).status;
    await expect.poll(gone, { timeout: 60_000, interval: 200 }).toBe(404);
  });

  test('a pull queue has no circuit breaker unless its config has one', async () => {
    const config = async (name: string) =>
      (await send('GET', `/v1/admin/queues/${name}/config`)).body;
    await queue('mail.plain');
    expect((await config('mail.plain')).circuit_breaker.enabled).toBe(false);
    await queue('mail.broken', { circuit_breaker: {} });
    expect((await config('mail.broken')).circuit_breaker).toMatchObject({ enabled: true });
    for (const name of ['mail.plain', 'mail.broken']) {
      for (let i = 0; i < 15; i++) await submit(name, { handler_ref: 'bad' });
      for (const task of await claim(name)) await fail(name, task, { delay_ms: 600_000 });
      await submit(name, { handler_ref: 'ok' });
      const left = await claim(name, { limit: 20 });
      const handlers = left.map(({ handler_ref }: any) => handler_ref);
      expect(handlers).toContain('ok');
      expect(handlers.includes('bad')).toBe(name === 'mail.plain');
      const stats = (await send('GET', `/v1/queues/${name}/stats`)).body;
      const bad = stats.breakers.find(({ handler_ref }: any) => handler_ref === 'bad');
      if (name === 'mail.plain') expect(stats.breakers).toEqual([]);
      else expect(bad).toMatchObject({ state: 'open', next_probe_at: expect.any(String) });
    }
    const waiting = await send('GET', '/v1/queues/mail.broken/tasks?status=PENDING&order=next');
    const reasons = waiting.body.tasks.map(({ waiting_for }: any) => waiting_for);
    expect(reasons).toContain('circuit_open');
  });

  test('no_worker: a due task that nobody claims is shown everywhere', async () => {
    await queue('mail.alone');
    const { id } = await submit('mail.alone');
    await submit('mail.alone', { delay_ms: 600_000 });
    const stats = async () => (await send('GET', '/v1/queues/mail.alone/stats')).body;
    expect((await stats()).state).toBe('running');
    await expect.poll(async () => (await stats()).state).toBe('no_worker');
    expect(await stats()).toMatchObject({ pending: 2, delayed: 1 });
    expect((await get(id)).waiting_for).toBe('no_worker');
    const list = (await send('GET', '/v1/admin/queues')).body;
    const item = list.find(({ name }: any) => name === 'mail.alone');
    expect(item.summary).toMatchObject({ state: 'no_worker', delayed: 1 });
    await claim('mail.alone');
    expect((await stats()).state).toBe('running');
  });

  test('a backup: of the embedded store alone, for an admin of all queues', async () => {
    const path = '/v1/admin/backup';
    const { status, body } = await server.as('root', { path });
    if (kind === 'embedded') expect(status).toBe(200);
    else expect([status, (body as any).code]).toEqual([409, 'BACKUP_UNAVAILABLE']);
    const unknown = await server.as('root', { path: `${path}?since_seq=999999999` });
    expect([unknown.status, (unknown.body as any).code]).toEqual([409, 'BACKUP_UNAVAILABLE']);
    const unread = await server.as('root', { path: `${path}?since_seq=x` });
    expect([unread.status, (unread.body as any).code]).toEqual([422, 'INVALID_QUERY']);
    const refused = await server.as('admin', { path });
    expect([refused.status, (refused.body as any).code]).toEqual([403, 'FORBIDDEN']);
  });
}
