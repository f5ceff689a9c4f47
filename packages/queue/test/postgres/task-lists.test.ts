import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TaskFilter, TaskListQuery } from '../../src/storage/task-list.js';
import type { TaskStore } from '../../src/storage/task-store.js';
import {
  scanTasks,
  type ListSource,
} from '../../src/storage/postgres/statements/task-lists.sql.js';
import { noon, someConfig } from '../task-store/fixture.js';
import { openOn } from './fresh-store.js';
import { startPostgres, type PostgresServer } from './postgres-server.js';

let postgres: PostgresServer;
let url: string;
beforeAll(async () => {
  postgres = await startPostgres();
  url = await postgres.database('lists');
}, 60_000);
afterAll(() => postgres.remove());

const taskCount = 100_000;
/** Tasks of which one in five waits; the others succeeded. */
const fill = `
  INSERT INTO millrace.tasks (id, queue, handler_ref, priority, group_key, created_at, first_due_at,
    submitted_by, content_type, headers, payload)
  SELECT '01KE6S00000000000000' || lpad(n::text, 6, '0'), 'mail',
    CASE n % 1000 WHEN 0 THEN 'rare' ELSE 'common' END, n % 10, NULL, ${noon} + n / 10,
    ${noon} + n / 10, 'shop', 'text/plain', '{}', ''
  FROM generate_series(1, ${taskCount}) AS n;
  INSERT INTO millrace.live (id, queue_no, created_at, updated_at, due_at, attempt, total_attempts,
    redrive_count, stage, priority, started, group_key, attempts)
  SELECT t.id, q.no, t.created_at, t.created_at, t.first_due_at, 0, 0, 0, 0, t.priority, false, '',
    '{}'
  FROM millrace.tasks t JOIN millrace.queues q ON q.name = t.queue
  WHERE right(t.id, 1) IN ('0', '5');
  INSERT INTO millrace.ended (id, queue_no, ended_at, attempt, total_attempts, redrive_count,
    outcome, handler_ref, attempts)
  SELECT t.id, q.no, t.created_at, 1, 1, 0, 3, '', '{}'
  FROM millrace.tasks t JOIN millrace.queues q ON q.name = t.queue
  WHERE right(t.id, 1) NOT IN ('0', '5');
  INSERT INTO millrace.ledger (queue_no, pending, in_flight, dead)
  SELECT q.no, ${taskCount / 5}, 0, 0 FROM millrace.queues q;
  ANALYZE millrace.tasks; ANALYZE millrace.live; ANALYZE millrace.ended`;

async function filledStore(): Promise<TaskStore> {
  const store = await openOn(url, { statementTimeoutMs: 60_000 });
  const put = { queue: 'mail', config: someConfig(), now: noon, by: 'ada' };
  await store.putQueue(put);
  await postgres.sql(url, fill);
  return store;
}

/** The plan of a scan with its values, as PostgreSQL runs it. */
async function planOf(
  source: ListSource,
  over: Partial<TaskListQuery> & { filter: TaskFilter },
): Promise<string> {
  const query = { queue: 'mail', order: 'newest' as const, ...over };
  const { statement, values } = scanTasks(source, query, 51);
  let { text } = statement;
  for (const [index, value] of [...values.entries()].toReversed()) {
    const literal = Array.isArray(value) ? `{${value.join()}}` : String(value);
    text = text.replaceAll(`$${index + 1}`, typeof value === 'number' ? literal : `'${literal}'`);
  }
  const rows = await postgres.sql(url, `EXPLAIN ${text}`);
  return rows.map((row) => row['QUERY PLAN']).join('\n');
}

test('list: pages of a large queue are read from indexes', { timeout: 120_000 }, async () => {
  const store = await filledStore();
  const after = { at: noon + 5_000, id: '01KE6S00000000000000050000' };
  const pending = { statuses: ['PENDING' as const] };
  const cases = [
    { source: 'all', over: { filter: {} }, index: 'tasks_listed' },
    { source: 'all', over: { filter: {}, after }, index: 'tasks_listed' },
    { source: 'all', over: { filter: { handlerRef: 'rare' } }, index: 'tasks_listed' },
    { source: 'all', over: { filter: { createdFrom: noon + 9_000 } }, index: 'tasks_listed' },
    { source: 'pending', over: { filter: pending, after }, index: 'live_oldest' },
    { source: 'next', over: { filter: pending, order: 'next' }, index: 'live_ready' },
  ] as const;
  for (const { source, over, index } of cases) {
    const plan = await planOf(source, over);
    expect(plan).toMatch(new RegExp(`Index (Only )?Scan (Backward )?using ${index}`));
    expect(plan).not.toMatch(/Seq Scan on (tasks|live|ended)/);
  }
  const page = await store.listTasks({ queue: 'mail', filter: {}, order: 'newest', limit: 50 });
  expect(page.tasks).toHaveLength(50);
  expect(page.tasks[0]!.id).toBe('01KE6S00000000000000100000');
});

test('count: is exact up to 10,000 and an estimate above', { timeout: 120_000 }, async () => {
  const store = await openOn(url, { statementTimeoutMs: 60_000 });
  const count = (filter: TaskFilter) => store.countTasks({ queue: 'mail', filter });
  expect(await count({ handlerRef: 'rare' })).toEqual({ count: 100, isEstimate: false });
  expect(await count({ createdFrom: noon + 9_500 })).toEqual({ count: 5_001, isEstimate: false });
  expect(await count({ statuses: ['PENDING'] })).toEqual({ count: 20_000, isEstimate: false });
  const many = await count({ handlerRef: 'common' });
  expect(many.isEstimate).toBe(true);
  expect(many.count / taskCount).toBeCloseTo(1, 0);
});
