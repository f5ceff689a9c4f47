import { flowTables } from './flow.sql.js';
import { eventTables } from './schema.sql.js';

/**
 * Upgrades of older tables, by the version they lead to. Columns and tables are renamed on purpose,
 * so that servers of older versions that still run cannot claim.
 */
export const upgrades: Readonly<Record<number, readonly string[]>> = {
  // Low-water marks by priority; succeeded tasks by an index instead of a table.
  6: [
    'DROP TABLE millrace.floors',
    `CREATE TABLE millrace.floors (
      queue_no bigint NOT NULL,
      priority smallint NOT NULL,
      due_at bigint NOT NULL,
      PRIMARY KEY (queue_no, priority)
    )`,
    `INSERT INTO millrace.floors (queue_no, priority, due_at)
      SELECT no, kind, 0 FROM millrace.queues CROSS JOIN generate_series(-2, 9) AS kind`,
    'ALTER TABLE millrace.gates RENAME COLUMN turns TO last_groups',
    `ALTER TABLE millrace.gates ADD COLUMN fifo_position text COLLATE "C" NOT NULL DEFAULT ''`,
    'DROP TABLE millrace.successes',
    `CREATE INDEX ended_succeeded ON millrace.ended (queue_no, ended_at, id) WHERE outcome = 3`,
  ],
  // Schedules and jobs.
  7: [
    `CREATE TABLE millrace.records (
      kind text COLLATE "C" NOT NULL,
      queue_no bigint NOT NULL,
      name text COLLATE "C" NOT NULL,
      body text NOT NULL,
      state text NOT NULL,
      revision bigint NOT NULL,
      created_at bigint NOT NULL,
      PRIMARY KEY (kind, queue_no, name)
    )`,
  ],
  // Workers.
  8: [
    `CREATE TABLE millrace.workers (
      queue_no bigint NOT NULL,
      key text COLLATE "C" NOT NULL,
      worker text NOT NULL,
      principal text NOT NULL,
      remote_ip text,
      seen_at bigint NOT NULL,
      claimed bigint NOT NULL,
      completed bigint NOT NULL,
      failed bigint NOT NULL,
      returned bigint NOT NULL,
      PRIMARY KEY (queue_no, key)
    )`,
  ],
  // Lists of tasks.
  9: [
    `CREATE INDEX tasks_listed ON millrace.tasks (queue, created_at, id) WHERE purged_at IS NULL`,
    'DROP INDEX millrace.ended_dead',
    `CREATE INDEX ended_dead ON millrace.ended (queue_no, ended_at, id, http_status, error_type,
      handler_ref) WHERE outcome = 4`,
  ],
  // History.
  10: [
    `CREATE TABLE millrace.history (
      queue_no bigint NOT NULL,
      step_s integer NOT NULL,
      at bigint NOT NULL,
      instance text COLLATE "C" NOT NULL,
      point text NOT NULL,
      PRIMARY KEY (queue_no, step_s, at, instance)
    )`,
    `CREATE TABLE millrace.history_totals (
      queue_no bigint PRIMARY KEY,
      succeeded bigint NOT NULL,
      failed bigint NOT NULL,
      dead bigint NOT NULL
    )`,
  ],
  // Results, progress and unique keys.
  11: [
    `ALTER TABLE millrace.live ADD COLUMN progress text,
      ADD COLUMN unique_key text COLLATE "C", ADD COLUMN unique_until bigint`,
    `ALTER TABLE millrace.ended ADD COLUMN progress text, ADD COLUMN result text,
      ADD COLUMN unique_key text COLLATE "C", ADD COLUMN unique_until bigint`,
    `CREATE TABLE millrace.unique_keys (
      queue_no bigint NOT NULL,
      key text COLLATE "C" NOT NULL,
      id text COLLATE "C" NOT NULL,
      held_until bigint,
      handler_ref text COLLATE "C" NOT NULL,
      status smallint,
      PRIMARY KEY (queue_no, key)
    )`,
    `CREATE INDEX unique_keys_timed ON millrace.unique_keys (held_until)
      WHERE held_until IS NOT NULL`,
    `CREATE INDEX unique_keys_by_task ON millrace.unique_keys (id)`,
  ],
  12: [
    `CREATE INDEX ended_by_error_and_handler
      ON millrace.ended (queue_no, error_type, handler_ref, ended_at, id) WHERE outcome = 4`,
  ],
  // Tables named for what they hold; the last groups beside the marks; history and workers in rows.
  13: [
    ...renamed('gates', 'queue_locks'),
    ...renamed('floors', 'low_water_marks'),
    ...renamed('ledger', 'counters'),
    `ALTER TABLE millrace.wrecks RENAME TO deleted_queues`,
    `ALTER INDEX millrace.wrecks_pkey RENAME TO deleted_queues_pkey`,
    ...renamed('records', 'rows'),
    'ALTER SEQUENCE millrace.ledger_entry_seq RENAME TO counters_entry_seq',
    // For servers of 0.1.0 that still take tasks during the upgrade.
    'CREATE VIEW millrace.ledger AS SELECT queue_no, pending, in_flight, dead FROM millrace.counters',
    `ALTER TABLE millrace.low_water_marks
      ADD COLUMN last_group text COLLATE "C" NOT NULL DEFAULT '\u{10FFFF}'`,
    `UPDATE millrace.low_water_marks m SET last_group = k.last_groups::jsonb->>(m.priority::text)
      FROM millrace.queue_locks k WHERE k.queue_no = m.queue_no
        AND k.last_groups::jsonb->>(m.priority::text) IS NOT NULL`,
    'ALTER TABLE millrace.queue_locks DROP COLUMN last_groups',
    'DROP INDEX millrace.live_lined, millrace.live_retried',
    `CREATE INDEX live_grouped ON millrace.live (queue_no, group_key, started DESC, due_at, id)
      WHERE stage < 2 AND group_key <> ''`,
    'ALTER TABLE millrace.rows RENAME COLUMN name TO key',
    'ALTER TABLE millrace.rows RENAME COLUMN state TO value',
    'ALTER TABLE millrace.rows ALTER COLUMN body DROP NOT NULL',
    `INSERT INTO millrace.rows (kind, queue_no, key, value, revision, created_at)
      SELECT 'history', queue_no, lpad(step_s::text, 5, '0') || ' ' || lpad(at::text, 15, '0')
        || ' ' || instance, point, 1, at FROM millrace.history
      UNION ALL
      SELECT 'totals', queue_no, '', json_build_object('succeeded', succeeded, 'failed', failed,
        'dead', dead)::text, 1, 0 FROM millrace.history_totals
      UNION ALL
      SELECT 'worker', queue_no, key, json_build_object('identity', json_build_object('worker',
        worker, 'principal', principal, 'remoteIp', remote_ip), 'seenAt', seen_at, 'claimed',
        claimed, 'completed', completed, 'failed', failed, 'returned', returned)::text, 1, seen_at
      FROM millrace.workers`,
    'DROP TABLE millrace.history, millrace.history_totals, millrace.workers',
  ],
  // The oldest pending task by its due time; events; options of tasks.
  14: [
    `CREATE INDEX live_due ON millrace.live (queue_no, due_at)
      WHERE stage < 2 AND created_at >= 0`,
    'UPDATE millrace.low_water_marks SET due_at = 0 WHERE priority = -2',
    ...eventTables,
    'ALTER TABLE millrace.tasks ADD COLUMN options text',
    'ALTER TABLE millrace.live ADD COLUMN labels text[], ADD COLUMN retain_ms bigint',
    'CREATE INDEX live_labelled ON millrace.live (queue_no) WHERE stage = 0 AND labels IS NOT NULL',
    'ALTER TABLE millrace.ended ADD COLUMN retained_until bigint',
    'DROP INDEX millrace.ended_succeeded',
    `CREATE INDEX ended_succeeded ON millrace.ended (queue_no, ended_at, id)
      WHERE outcome = 3 AND retained_until IS NULL`,
    `CREATE INDEX ended_retained ON millrace.ended (retained_until, id)
      WHERE retained_until IS NOT NULL`,
  ],
  // Flows.
  15: [
    'ALTER TABLE millrace.live ADD COLUMN flow text, ADD COLUMN wait smallint',
    'ALTER TABLE millrace.ended ADD COLUMN flow text',
    ...flowTables,
  ],
  // The index by due time for tasks with a group alone.
  16: [
    'DROP INDEX millrace.live_due',
    `CREATE INDEX live_due ON millrace.live (queue_no, due_at)
      WHERE stage < 2 AND group_key <> '' AND created_at >= 0`,
    'UPDATE millrace.low_water_marks SET due_at = 0 WHERE priority = -2',
  ],
};

function renamed(from: string, to: string): string[] {
  return [
    `ALTER TABLE millrace.${from} RENAME TO ${to}`,
    `ALTER INDEX millrace.${from}_pkey RENAME TO ${to}_pkey`,
  ];
}
