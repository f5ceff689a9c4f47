import { afterAll, describe, expect, test } from 'vitest';
import { makeQueue, startTestServer, tokens } from './support/server.js';
import { buryTasks, claim, submitOne } from './support/tasks.js';

const server = await startTestServer({ onEnd: afterAll });
let made = 0;
const newQueue = async () => {
  const queue = `mail.list${++made}`;
  await makeQueue(server, queue);
  return queue;
};

interface Page {
  tasks: Record<string, unknown>[];
  next_cursor: string;
}
const get = (path: string) => server.as('operator', { path: `/v1/queues/${path}` });
const page = async (path: string): Promise<Page> => {
  const answer = await get(path);
  expect(answer.status, answer.text).toBe(200);
  return answer.body as unknown as Page;
};
const idsOf = ({ tasks }: Page) => tasks.map(({ id }) => id);

describe('task lists over HTTP', () => {
  test('list: has envelopes, and waiting_for of pending tasks', async () => {
    const queue = await newQueue();
    const [dead] = await buryTasks(server, 1, { queue });
    const running = await submitOne(server, queue);
    await claim(server.store, queue, server.clock.now());
    const pending = await submitOne(server, queue, { delay_ms: 60_000 });
    const { tasks, next_cursor } = await page(`${queue}/tasks`);
    expect(tasks.map(({ id, status, waiting_for }) => [id, status, waiting_for])).toEqual([
      [pending, 'PENDING', 'dispatch'],
      [running, 'IN_FLIGHT', undefined],
      [dead, 'DEAD', undefined],
    ]);
    expect(next_cursor).toBe('');
    for (const task of tasks) {
      expect(task).not.toHaveProperty('payload');
      expect(task).not.toHaveProperty('attempts');
    }
    expect(idsOf(await page(`${queue}/tasks?status=DEAD&status=PENDING`))).toEqual([pending, dead]);
    expect(idsOf(await page(`${queue}/tasks?order=oldest&status=IN_FLIGHT`))).toEqual([running]);
    const count = await get(`${queue}/tasks:count?status=DEAD&status=PENDING`);
    expect(count.body).toEqual({ count: 2, is_estimate: false });
  });

  test('list: pages follow the cursor, which belongs to its filter', async () => {
    const queue = await newQueue();
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push(await submitOne(server, queue));
    const first = await page(`${queue}/tasks?limit=2&order=oldest`);
    const cursor = `cursor=${encodeURIComponent(first.next_cursor)}`;
    const second = await page(`${queue}/tasks?limit=3&order=oldest&${cursor}`);
    expect([...idsOf(first), ...idsOf(second)]).toEqual(ids);
    expect(second.next_cursor).toBe('');
    for (const other of [
      `${queue}/tasks?order=newest&${cursor}`,
      `${queue}/tasks?order=oldest&status=DEAD&${cursor}`,
      `${await newQueue()}/tasks?order=oldest&${cursor}`,
      `${queue}/tasks?order=oldest&cursor=nonsense`,
    ]) {
      const answer = await get(other);
      expect([answer.status, answer.body['code']]).toEqual([410, 'STALE_CURSOR']);
    }
  });

  test('list: a limit is clamped, every other bad value is refused', async () => {
    const queue = await newQueue();
    expect((await get(`${queue}/tasks?limit=100000`)).status).toBe(200);
    const busy = await newQueue();
    for (let i = 0; i < 2; i++) await submitOne(server, busy);
    for (const limit of [0, -7]) {
      expect((await page(`${busy}/tasks?limit=${limit}`)).tasks).toHaveLength(1);
    }
    const next = await page(`${queue}/tasks?order=next&status=PENDING`);
    expect(next).toEqual({ tasks: [], next_cursor: '' });
    for (const query of [
      'limit=x',
      'status=RUNNING',
      'status=',
      'order=random',
      'order=next',
      'order=next&status=DEAD',
      'order=next&status=PENDING&status=DEAD',
      'from=yesterday',
      'to=10000-01-01T00:00:00Z',
      'handler_ref=',
      'group_key=',
      'other=1',
      'order=newest&order=oldest',
    ]) {
      const answer = await get(`${queue}/tasks?${query}`);
      expect([query, answer.status, answer.body['code']]).toEqual([query, 422, 'INVALID_QUERY']);
    }
    expect((await get(`${queue}/tasks:count?order=newest`)).body['code']).toBe('INVALID_QUERY');
  });

  test('list: needs the role operator', async () => {
    const queue = await newQueue();
    for (const path of [`/v1/queues/${queue}/tasks`, `/v1/queues/${queue}/tasks:count`]) {
      const answer = await server.send({ path, token: tokens.submitter });
      expect([answer.status, answer.body['code']]).toEqual([403, 'FORBIDDEN']);
    }
  });
});
