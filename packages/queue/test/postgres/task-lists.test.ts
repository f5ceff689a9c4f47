import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TaskStatus } from '../../src/core/task.js';
import {
  maxScannedTasks,
  type TaskFilter,
  type TaskListQuery,
} from '../../src/storage/port/task-list.js';
import type { TaskStore } from '../../src/storage/port/task-store.js';
import { scanTasks, type ListSource } from '../../src/storage/postgres/task-lists.js';
import { noon, someConfig } from '../task-store/fixture.js';
import { openOn } from './fresh-store.js';
import { startPostgres, type PostgresServer } from './postgres-server.js';

let postgres: PostgresServer;
let url: string;
beforeAll(async () => {
  postgres = await startPostgres();
  url = await postgres.database('lists');
});
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
  INSERT INTO millrace.counters (queue_no, pending, in_flight, dead)
  SELECT q.no, ${taskCount / 5}, 0, 0 FROM millrace.queues q;
  ANALYZE millrace.tasks; ANALYZE millrace.live; ANALYZE millrace.ended`;

async function filledStore(): Promise<TaskStore> {
  const store = await openOn(url, { statementTimeoutMs: 60_000 });
  const put = { queue: 'mail', config: someConfig(), now: noon, by: 'ada' };
  await store.putQueue(put);
  await postgres.sql(url, fill);
  return store;
}

/** A scan with its values, as PostgreSQL runs it. */
function literalScan(
  source: ListSource,
  over: Partial<TaskListQuery> & { filter: TaskFilter },
  limit = 51,
): { text: string } {
  const query = { queue: 'mail', order: 'newest' as const, ...over };
  const { statement, values } = scanTasks(source, query, limit);
  let { text } = statement;
  for (const [index, value] of [...values.entries()].toReversed()) {
    const literal = Array.isArray(value) ? `{${value.join()}}` : String(value);
    text = text.replaceAll(`$${index + 1}`, typeof value === 'number' ? literal : `'${literal}'`);
  }
  return { text };
}

async function planOf(source: ListSource, over: Case['over']): Promise<string> {
  const rows = await postgres.sql(url, `EXPLAIN ${literalScan(source, over).text}`);
  return rows.map((row) => row['QUERY PLAN']).join('\n');
}

interface Case {
  source: ListSource;
  over: Partial<TaskListQuery> & { filter: TaskFilter };
  index: string;
}

test('list: pages of a large queue are read from indexes', async () => {
  const store = await filledStore();
  const after = { at: noon + 5_000, id: '01KE6S00000000000000050000' };
  const pending = { statuses: ['PENDING' as const] };
  const window = { createdFrom: noon + 1_000, createdBefore: noon + 9_000 };
  const statuses = (...list: TaskStatus[]) => ({ statuses: list });
  const cases: Case[] = [
    { source: 'all', over: { filter: {} }, index: 'tasks_listed' },
    { source: 'all', over: { filter: {}, order: 'oldest' }, index: 'tasks_listed' },
    { source: 'all', over: { filter: {}, after }, index: 'tasks_listed' },
    { source: 'all', over: { filter: { handlerRef: 'rare' } }, index: 'tasks_listed' },
    { source: 'all', over: { filter: { handlerRef: 'rare' }, after }, index: 'tasks_listed' },
    { source: 'all', over: { filter: { groupKey: 'acme' } }, index: 'tasks_listed' },
    { source: 'all', over: { filter: { createdFrom: noon + 9_000 } }, index: 'tasks_listed' },
    { source: 'all', over: { filter: { createdBefore: noon + 9_000 } }, index: 'tasks_listed' },
    { source: 'all', over: { filter: window, after, order: 'oldest' }, index: 'tasks_listed' },
    { source: 'all', over: { filter: statuses('SUCCEEDED') }, index: 'tasks_listed' },
    { source: 'all', over: { filter: statuses('IN_FLIGHT') }, index: 'tasks_listed' },
    { source: 'all', over: { filter: statuses('DEAD', 'PENDING') }, index: 'tasks_listed' },
    {
      source: 'all',
      over: { filter: { ...statuses('DEAD'), ...window, handlerRef: 'rare', groupKey: 'acme' } },
      index: 'tasks_listed',
    },
    { source: 'pending', over: { filter: pending }, index: 'live_oldest' },
    { source: 'pending', over: { filter: pending, after }, index: 'live_oldest' },
    { source: 'pending', over: { filter: { ...pending, ...window } }, index: 'live_oldest' },
    {
      source: 'pending',
      over: { filter: { ...pending, handlerRef: 'rare', groupKey: 'acme' }, order: 'oldest' },
      index: 'live_oldest',
    },
    { source: 'next', over: { filter: pending, order: 'next' }, index: 'live_ready' },
    { source: 'next', over: { filter: pending, order: 'next', after }, index: 'live_ready' },
    {
      source: 'next',
      over: { filter: { ...pending, ...window, handlerRef: 'rare' }, order: 'next' },
      index: 'live_ready',
    },
  ];
  for (const { source, over, index } of cases) {
    const plan = await planOf(source, over);
    const about = JSON.stringify(over);
    expect(plan, about).toMatch(new RegExp(`Index (Only )?Scan (Backward )?using ${index}`));
    expect(plan, about).not.toMatch(/Seq Scan on (tasks|live|ended)/);
  }
  const page = await store.listTasks({ queue: 'mail', filter: {}, order: 'newest', limit: 50 });
  expect(page.tasks).toHaveLength(50);
  expect(page.tasks[0]!.id).toBe('01KE6S00000000000000100000');
});

test.each([
  ['all tasks', { handlerRef: 'none' }, taskCount],
  ['ended tasks', { statuses: ['SUCCEEDED' as const], groupKey: 'none' }, taskCount],
  ['pending tasks', { statuses: ['PENDING' as const], handlerRef: 'none' }, taskCount / 5],
])(
  'list: a filter of %s that matches nothing reads a bounded number a page',
  async (_name, filter, total) => {
    const store = await openOn(url, { statementTimeoutMs: 60_000 });
    const query = { queue: 'mail', filter, order: 'newest' as const, limit: 50 };
    let pages = 0;
    let after: TaskListQuery['after'];
    do {
      const page = await store.listTasks({ ...query, after });
      expect(page.tasks).toEqual([]);
      after = page.next;
      pages++;
    } while (after && pages < 100);
    // A full last page has a cursor to an empty one.
    expect(pages).toBe(total / maxScannedTasks + 1);
  },
);

test('list: a scan reads no more rows than it may', async () => {
  const filter = { handlerRef: 'none', groupKey: 'none' };
  const { text } = literalScan('all', { filter }, maxScannedTasks);
  const rows = await postgres.sql(url, `EXPLAIN (ANALYZE, FORMAT JSON) ${text}`);
  const [{ Plan: plan }] = rows[0]!['QUERY PLAN'] as [{ Plan: PlanNode }];
  const reads = scansOf(plan).filter((node) => node['Relation Name'] === 'tasks');
  expect(reads.length).toBeGreaterThan(0);
  for (const node of reads) expect(node['Actual Rows']).toBeLessThanOrEqual(maxScannedTasks);
});

interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Actual Rows': number;
  Plans?: PlanNode[];
}

function scansOf(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(scansOf)];
}

test('count: is exact up to 10,000 and an estimate above', async () => {
  const store = await openOn(url, { statementTimeoutMs: 60_000 });
  const count = (filter: TaskFilter) => store.countTasks({ queue: 'mail', filter });
  expect(await count({ handlerRef: 'rare' })).toEqual({ count: 100, isEstimate: false });
  expect(await count({ createdFrom: noon + 9_500 })).toEqual({ count: 5_001, isEstimate: false });
  expect(await count({ statuses: ['PENDING'] })).toEqual({ count: 20_000, isEstimate: false });
  const many = await count({ handlerRef: 'common' });
  expect(many.isEstimate).toBe(true);
  expect(many.count / taskCount).toBeCloseTo(1, 0);
});
