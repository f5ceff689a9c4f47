import { afterAll, beforeAll, expect, test } from 'vitest';
import { plannerSettings } from '../../src/storage/postgres/connections.js';
import type { Statement } from '../../src/storage/postgres/statement.js';
import { purgeTasks, redriveTasks } from '../../src/storage/postgres/retention.js';
import { claim } from '../../src/storage/postgres/claim.sql.js';
import { settle } from '../../src/storage/postgres/settlements.js';
import { cancelPendingTasks, updatePending } from '../../src/storage/postgres/task-changes.js';
import { openOn } from './fresh-store.js';
import { startPostgres, type PostgresServer } from './postgres-server.js';

let postgres: PostgresServer;
beforeAll(async () => (postgres = await startPostgres()), 120_000);
afterAll(() => postgres.remove());

interface PlanNode {
  'Relation Name'?: string;
  'Index Name'?: string;
  Plans?: PlanNode[];
}

const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

/** The indexes by which a statement finds rows of the tables, on a connection like the store's. */
async function indexesOf(url: string, { text }: Statement, tables: string[]): Promise<string[]> {
  const rows = await postgres.sql(url, `EXPLAIN (GENERIC_PLAN, FORMAT JSON) ${text}`);
  const [{ Plan: plan }] = rows[0]!['QUERY PLAN'] as [{ Plan: PlanNode }];
  const scans = nodesOf(plan).filter((node) => tables.includes(node['Relation Name'] ?? ''));
  const indexes = scans.flatMap((node) => node['Index Name'] ?? []);
  return [...new Set(indexes)].toSorted();
}

const cases: [name: string, statement: Statement, indexes: string[]][] = [
  ['redrive', redriveTasks, ['ended_pkey']],
  ['purge', purgeTasks, ['ended_pkey']],
  ['cancel', cancelPendingTasks, ['live_pkey']],
  ['update', updatePending, ['live_pkey']],
  ['settle', settle, ['live_pkey']],
];

const fill = `
  INSERT INTO millrace.ended (id, queue_no, ended_at, attempt, total_attempts, redrive_count,
    outcome, handler_ref, attempts)
  SELECT 'E' || n, 1, n, 0, 0, 0, 4, 'mail.send', '{}' FROM generate_series(1, 20000) AS s(n);
  INSERT INTO millrace.live (id, queue_no, created_at, updated_at, due_at, attempt,
    total_attempts, redrive_count, stage, priority, started, group_key, attempts)
  SELECT 'L' || n, 1, n, n, n, 0, 0, 0, 0, 4, false, '', '{}' FROM generate_series(1, 20000) AS s(n)`;

/** Autovacuum would otherwise choose the moment of the statistics. */
const noStatistics = `
  ALTER TABLE millrace.ended SET (autovacuum_enabled = false);
  ALTER TABLE millrace.live SET (autovacuum_enabled = false)`;

test('plans: changes by id read the primary key, whatever the statistics', async () => {
  const url = await postgres.database('plans');
  await openOn(url);
  await postgres.sql(url, noStatistics);
  await postgres.sql(url, plannerSettings.map((setting) => `SET ${setting}`).join(';'));
  const check = async (state: string) => {
    for (const [name, statement, indexes] of cases) {
      const found = await indexesOf(url, statement, ['ended', 'live']);
      expect([state, name, found]).toEqual([state, name, indexes]);
    }
    // A claim changes rows where it found them.
    expect(await indexesOf(url, claim, ['live']), state).not.toContain('live_pkey');
    expect(await indexesOf(url, claim, ['tasks']), state).toEqual(['tasks_pkey']);
  };
  await check('empty');
  await postgres.sql(url, fill);
  await check('filled without statistics');
  await postgres.sql(url, 'ANALYZE millrace.ended; ANALYZE millrace.live');
  await check('filled');
  await postgres.sql(url, 'DELETE FROM millrace.ended; DELETE FROM millrace.live');
  await postgres.sql(url, 'ANALYZE millrace.ended; ANALYZE millrace.live');
  await check('emptied');
});
