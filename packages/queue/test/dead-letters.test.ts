import { afterAll, describe, expect, test } from 'vitest';
import { auditFault, type WireAuditRecord } from '../src/core/audit.js';
import { MemoryStore } from './support/memory-store/index.js';
import type {
  DeadTaskQuery,
  DeadChange,
  DeadChangeResult,
} from '../src/storage/port/task-store.js';
import { makeQueue, newEmbeddedStore, startTestServer } from './support/server.js';
import { buryTasks, submitOne } from './support/tasks.js';

const store = await newEmbeddedStore(afterAll);
const server = await startTestServer({ onEnd: afterAll, store });
let queues = 0;

async function newQueue(config: Record<string, unknown> = {}): Promise<string> {
  const name = `mail.dlq${++queues}`;
  await makeQueue(server, name, config);
  return name;
}

interface Page {
  tasks: Record<string, unknown>[];
  next_cursor: string;
}

const browse = async (queue: string, query: Record<string, string | number> = {}) => {
  const text = new URLSearchParams(query as Record<string, string>);
  const answer = await server.as('operator', { path: `/v1/queues/${queue}/dlq?${text}` });
  return { ...answer, page: answer.body as unknown as Page };
};
const idsOf = ({ page }: { page: Page }) => page.tasks.map(({ id }) => id);
const act = async (verb: 'redrive' | 'purge', queue: string, body: unknown) => {
  const path = `/v1/queues/${queue}/dlq:${verb}`;
  const answer = await server.as('operator', { method: 'POST', path, body });
  expect(answer.status, answer.text).toBe(200);
  return answer.body;
};
const auditOf = async (queue: string) => {
  const { body } = await server.as('admin', { path: `/v1/admin/audit?queue=${queue}&limit=500` });
  return body['records'] as WireAuditRecord[];
};

describe('browsing', () => {
  test('shows whole tasks, the newest death first, page by page', async () => {
    const queue = await newQueue();
    const ids = await buryTasks(server, 7, { queue });
    const first = await browse(queue, { limit: 3 });
    expect(idsOf(first)).toEqual([ids[6], ids[5], ids[4]]);
    expect(first.page.tasks[0]).toMatchObject({
      status: 'DEAD',
      dead_reason: 'PERMANENT',
      payload: '',
      attempts: [{ attempt: 1, outcome: 'FAILED', error_type: 'HTTP_5XX', http_status: 500 }],
      last_error: { error_type: 'HTTP_5XX', http_status: 500 },
    });
    expect(first.page.tasks[0]).not.toHaveProperty('waiting_for');
    // The limit may change on the way.
    const second = await browse(queue, { limit: 2, cursor: first.page.next_cursor });
    expect(idsOf(second)).toEqual([ids[3], ids[2]]);
    const third = await browse(queue, { cursor: second.page.next_cursor });
    expect(idsOf(third)).toEqual([ids[1], ids[0]]);
    expect(third.page.next_cursor).toBe('');
    expect(idsOf(await browse(queue, { cursor: '' }))).toHaveLength(7);
  });

  test('filters by kind, handler and time, from inclusive and to exclusive', async () => {
    const queue = await newQueue();
    const at = Date.parse('2026-03-02T10:00:00Z');
    const a = await buryTasks(server, 2, { queue, at, errorType: 'TIMEOUT', httpStatus: null });
    const b = await buryTasks(server, 2, { queue, at: at + 10 }, { handler_ref: 'other' });
    expect(idsOf(await browse(queue, { error_type: 'TIMEOUT' }))).toEqual([a[1], a[0]]);
    expect(idsOf(await browse(queue, { handler_ref: 'other' }))).toEqual([b[1], b[0]]);
    const from = '2026-03-02T11:00:00.001+01:00';
    const to = '2026-03-02T10:00:00.011Z';
    expect(idsOf(await browse(queue, { from, to }))).toEqual([b[0], a[1]]);
    expect(idsOf(await browse(queue, { from: to, to: from }))).toEqual([]);
  });

  test('takes a limit above 500 as 500', async () => {
    const queue = await newQueue();
    expect((await browse(queue, { limit: 100_000 })).status).toBe(200);
  });

  test('ends a page at 8 MiB, but never without a task', async () => {
    const queue = await newQueue({ limits: { max_payload_bytes: 8_388_608 } });
    const payload = Buffer.alloc(5 * 2 ** 20).toString('base64');
    const ids = await buryTasks(server, 2, { queue }, { payload });
    const large = await buryTasks(
      server,
      1,
      { queue },
      { payload: Buffer.alloc(8_388_608).toString('base64') },
    );
    const pages: unknown[][] = [];
    let cursor = '';
    do {
      const answer = await browse(queue, { cursor });
      pages.push(idsOf(answer));
      cursor = answer.page.next_cursor;
    } while (cursor !== '');
    expect(pages).toEqual([[large[0]], [ids[1]], [ids[0]]]);
  });
});

describe('a cursor', () => {
  const start = async (query: Record<string, string | number> = {}) => {
    const queue = await newQueue();
    await buryTasks(server, 3, { queue });
    const { page } = await browse(queue, { limit: 1, ...query });
    return { queue, cursor: page.next_cursor };
  };
  const stale = { status: 410, body: { code: 'STALE_CURSOR' } };

  test('is stale after a day', async () => {
    const { queue, cursor } = await start();
    server.clock.aheadMs += 86_400_000 - 60_000;
    expect((await browse(queue, { cursor })).status).toBe(200);
    server.clock.aheadMs += 120_000;
    expect(await browse(queue, { cursor })).toMatchObject(stale);
    server.clock.aheadMs = 0;
  });

  test('is stale for another queue or another filter', async () => {
    const { cursor } = await start();
    const { queue } = await start();
    expect(await browse(queue, { cursor })).toMatchObject(stale);
    const filtered = await start({ error_type: 'HTTP_5XX' });
    const { queue: own, cursor: next } = filtered;
    expect(await browse(own, { cursor: next })).toMatchObject(stale);
    expect((await browse(own, { cursor: next, error_type: 'HTTP_5XX' })).status).toBe(200);
  });

  test('knows a time by what it means and not by how it is written', async () => {
    const { queue, cursor } = await start({ from: '2020-01-01T00:00:00Z' });
    const again = await browse(queue, { cursor, from: '2020-01-01T01:00:00.000+01:00' });
    expect(again.status).toBe(200);
  });

  test('is stale when the queue was deleted and made again', async () => {
    const { queue, cursor } = await start();
    await act('purge', queue, { filter: {} });
    const path = `/v1/admin/queues/${queue}`;
    expect((await server.as('admin', { method: 'DELETE', path })).status).toBe(204);
    await makeQueue(server, queue);
    expect(await browse(queue, { cursor })).toMatchObject(stale);
  });

  test('is not that of the audit log', async () => {
    const { queue, cursor } = await start();
    const { body } = await server.as('root', { path: '/v1/admin/audit?limit=1' });
    const other = String(body['next_cursor']);
    expect(other).not.toBe('');
    expect(await browse(queue, { cursor: other })).toMatchObject(stale);
    const path = `/v1/admin/audit?cursor=${cursor}`;
    expect(await server.as('root', { path })).toMatchObject(stale);
  });
});

describe('a redrive', () => {
  test('gives the tasks another run, oldest first and spread over time', async () => {
    const queue = await newQueue();
    const ids = await buryTasks(server, 4, { queue });
    expect(await act('redrive', queue, { filter: {}, rate_per_second: 2 })).toEqual({ count: 4 });
    const tasks = await Promise.all(
      ids.map(async (id) => (await server.as('root', { path: `/v1/tasks/${id}` })).body),
    );
    const starts = tasks.map((task) => Date.parse(String(task['next_attempt_at'])));
    expect(starts.map((at) => at - starts[0]!)).toEqual([0, 500, 1_000, 1_500]);
    expect(tasks[0]).toMatchObject({
      status: 'PENDING',
      attempt: 0,
      total_attempts: 1,
      redrive_count: 1,
      expires_at: null,
      dead_at: null,
      dead_reason: null,
      last_error: { error_type: 'HTTP_5XX' },
    });
    expect(tasks[0]!['attempts']).toHaveLength(1);
  });

  test('spreads 500 a second unless told, and not at all with 0', async () => {
    for (const [body, gap] of [
      [{}, 2],
      [{ rate_per_second: 0 }, 0],
    ] as const) {
      const queue = await newQueue();
      const ids = await buryTasks(server, 2, { queue });
      await act('redrive', queue, { ids, ...body });
      const [a, b] = await Promise.all(
        ids.map(async (id) => {
          const task = await server.as('root', { path: `/v1/tasks/${id}` });
          return Date.parse(String(task.body['next_attempt_at']));
        }),
      );
      expect(b! - a!).toBe(gap);
    }
  });

  test('passes over what is not dead in this queue, and counts an id once', async () => {
    const queue = await newQueue();
    const other = await newQueue();
    const [dead] = await buryTasks(server, 1, { queue });
    const [foreign] = await buryTasks(server, 1, { queue: other });
    const pending = await submitOne(server, queue);
    const ids = [dead, dead!.toLowerCase(), foreign, pending, '01JD3Z8Q4M7X2N5V9RTBKWCH6E'];
    expect(await act('redrive', queue, { ids, dry_run: true })).toEqual({ count: 1 });
    expect(await act('redrive', queue, { ids })).toEqual({ count: 1 });
    expect(await act('redrive', queue, { ids })).toEqual({ count: 0 });
    expect(await act('redrive', queue, { ids: [] })).toEqual({ count: 0 });
  });
});

describe('a purge', () => {
  test('deletes what the whole filter matches, and nothing else', async () => {
    const queue = await newQueue();
    const gone = await buryTasks(server, 2, { queue, httpStatus: 404 });
    const otherHandler = await buryTasks(
      server,
      1,
      { queue, httpStatus: 404 },
      { handler_ref: 'other' },
    );
    const otherStatus = await buryTasks(server, 1, { queue, httpStatus: 500 });
    const filter = { handler_ref: 'mail.send', http_status: 404 };
    expect(await act('purge', queue, { filter, dry_run: true })).toEqual({ count: 2 });
    expect(idsOf(await browse(queue))).toHaveLength(4);
    expect(await act('purge', queue, { filter })).toEqual({ count: 2 });
    expect(idsOf(await browse(queue))).toEqual([...otherStatus, ...otherHandler]);
    expect((await server.as('root', { path: `/v1/tasks/${gone[0]}` })).status).toBe(404);
    expect(await act('purge', queue, { filter: {}, dry_run: true })).toEqual({ count: 2 });
  });

  test('leaves alone what dies after the call began', async () => {
    const queue = await newQueue();
    await buryTasks(server, 1, { queue });
    const [late] = await buryTasks(server, 1, { queue, at: server.clock.now() + 60_000 });
    const filter = { error_type: 'HTTP_5XX' };
    expect(await act('purge', queue, { filter, dry_run: true })).toEqual({ count: 1 });
    expect(await act('purge', queue, { ids: [late], dry_run: true })).toEqual({ count: 0 });
    expect(await act('purge', queue, { filter: {} })).toEqual({ count: 1 });
    expect(await act('purge', queue, { ids: [late] })).toEqual({ count: 0 });
    expect(idsOf(await browse(queue))).toEqual([late]);
  });
});

describe('the audit log', () => {
  test('has a record of every act, with the selector as it was sent', async () => {
    const queue = await newQueue();
    await buryTasks(server, 3, { queue });
    const selector = { filter: { from: '2020-01-01T01:00:00+01:00' }, rate_per_second: 7 };
    await act('redrive', queue, { filter: {}, dry_run: true });
    await act('redrive', queue, selector);
    await act('purge', queue, { ids: [] });
    await act('purge', queue, { filter: { error_type: 'NONE' } });
    await server.as('operator', { method: 'POST', path: `/v1/admin/queues/${queue}:pause` });
    await server.as('operator', { method: 'POST', path: `/v1/admin/queues/${queue}:resume` });
    const records = await auditOf(queue);
    expect(
      records.map(({ action, principal, selector, count }) => ({
        action,
        principal,
        selector,
        count,
      })),
    ).toEqual([
      { action: 'resume', principal: 'operator', selector: null, count: null },
      { action: 'pause', principal: 'operator', selector: null, count: null },
      {
        action: 'purge',
        principal: 'operator',
        selector: { filter: { error_type: 'NONE' } },
        count: 0,
      },
      { action: 'purge', principal: 'operator', selector: { ids: [] }, count: 0 },
      { action: 'redrive', principal: 'operator', selector, count: 3 },
      { action: 'config_write', principal: 'root', selector: null, count: null },
    ]);
  });

  test('is a whole chain, read page by page', async () => {
    const records: WireAuditRecord[] = [];
    let cursor = '';
    do {
      const path = `/v1/admin/audit?limit=7&cursor=${cursor}`;
      const { status, body } = await server.as('root', { path });
      expect(status).toBe(200);
      records.push(...(body['records'] as WireAuditRecord[]));
      cursor = String(body['next_cursor']);
    } while (cursor !== '');
    const inOrder = records.toReversed();
    inOrder.forEach((record, n) => expect(auditFault(inOrder[n - 1], record)).toBeUndefined());
    expect(inOrder.length).toBeGreaterThan(10);
  });

  test('shows an admin the acts on the granted queues alone', async () => {
    await makeQueue(server, 'other.secret');
    const { body } = await server.as('stranger', { path: '/v1/admin/audit?limit=500' });
    const records = body['records'] as WireAuditRecord[];
    expect(new Set(records.map(({ queue }) => queue))).toEqual(new Set(['other.secret']));
  });

  test('can be cut to a time', async () => {
    const queue = await newQueue();
    const [made] = await auditOf(queue);
    const path = `/v1/admin/audit?queue=${queue}`;
    const count = async (query: string) => {
      const { body } = await server.as('root', { path: `${path}&${query}` });
      return (body['records'] as unknown[]).length;
    };
    expect(await count(`from=${made!.at}`)).toBe(1);
    expect(await count(`to=${made!.at}`)).toBe(0);
  });
});

test('groups show what failed alike, the largest first', async () => {
  const queue = await newQueue();
  const at = Date.parse('2026-03-02T10:00:00Z');
  await buryTasks(server, 1, { queue, at, errorType: 'TIMEOUT', httpStatus: null });
  const ids = await buryTasks(server, 3, { queue, at });
  const { body } = await server.as('operator', { path: `/v1/queues/${queue}/dlq:groups` });
  expect(body['groups']).toEqual([
    {
      error_type: 'HTTP_5XX',
      handler_ref: 'mail.send',
      http_status: 500,
      count: 3,
      first_seen: '2026-03-02T10:00:00.000Z',
      last_seen: '2026-03-02T10:00:00.002Z',
      sample_id: expect.toBeOneOf(ids) as unknown,
      sample_message: expect.any(String) as unknown,
    },
    expect.objectContaining({ error_type: 'TIMEOUT', http_status: null, count: 1 }),
  ]);
});

describe('many dead tasks', () => {
  /** A store that has any number of dead tasks, and a clock that each page puts forward. */
  class EndlessStore extends MemoryStore {
    readonly chunks: number[] = [];
    pages = 0;
    onPage: () => void = () => undefined;

    constructor(private readonly total: number) {
      super();
    }

    override async deadTasks(query: DeadTaskQuery) {
      this.pages++;
      this.onPage();
      const start = query.after ? Number(query.after.id) : 0;
      const end = Math.min(start + Math.min(query.limit, 600), this.total);
      const tasks = Array.from({ length: end - start }, (_, n) => ({ id: String(start + n + 1) }));
      const next = end < this.total ? { deadAt: 0, id: String(end) } : undefined;
      return { tasks: tasks as never[], next };
    }

    /** The times at which the first and the last of each chunk are due. */
    readonly due: number[][] = [];

    override async actOnDead({ action, ids, dueAt }: DeadChange): Promise<DeadChangeResult> {
      if (action === 'purge') this.chunks.push(ids.length);
      else this.due.push([dueAt!(0), dueAt!(ids.length - 1)]);
      return { kind: 'done', ids: [...ids], dependents: 0, row: undefined };
    }
  }

  test('are acted on in chunks of 1,000', async () => {
    const store = new EndlessStore(2_500);
    const own = await startTestServer({ store });
    await makeQueue(own);
    const path = '/v1/queues/mail/dlq:purge';
    const { body } = await own.as('root', { method: 'POST', path, body: { filter: {} } });
    expect(body).toEqual({ count: 2_500 });
    expect(store.chunks).toEqual([1_000, 1_000, 500]);
  });

  test('start one after the other, also from one chunk to the next', async () => {
    const store = new EndlessStore(2_500);
    const own = await startTestServer({ store });
    await makeQueue(own);
    const path = '/v1/queues/mail/dlq:redrive';
    const body = { filter: {}, rate_per_second: 100 };
    expect((await own.as('root', { method: 'POST', path, body })).body).toEqual({ count: 2_500 });
    const start = store.due[0]![0]!;
    expect(store.due.map((chunk) => chunk.map((at) => at - start))).toEqual([
      [0, 9_990],
      [10_000, 19_990],
      [20_000, 24_990],
    ]);
  });

  test('are left when 25 seconds are over, and the answer says so', async () => {
    const store = new EndlessStore(1_000_000);
    const own = await startTestServer({ store });
    await makeQueue(own);
    const { monotonic } = own.clock;
    let aheadMs = 0;
    own.clock.monotonic = () => monotonic() + aheadMs;
    store.onPage = () => (aheadMs += 5_000);
    const path = '/v1/queues/mail/dlq:purge';
    const { body } = await own.as('root', { method: 'POST', path, body: { filter: {} } });
    expect(body).toMatchObject({ complete: false });
    expect(body['count']).toBe(store.chunks.reduce((sum, chunk) => sum + chunk, 0));
    expect(store.pages).toBe(5);
    const filter = { error_type: 'X' };
    const dry = await own.as('root', { method: 'POST', path, body: { filter, dry_run: true } });
    expect(dry.body).toMatchObject({ complete: false });
  });
});

test('nothing was answered that the contract does not describe', () => {
  expect(server.differences).toEqual([]);
});
