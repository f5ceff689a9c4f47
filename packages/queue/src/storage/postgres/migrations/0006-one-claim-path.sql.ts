/**
 * - `floors`: for each queue and priority a due time; every ready task without a group below it was
 *   claimed. Priority -1 is for scheduled tasks, -2 for the creation time of pending tasks.
 * - `last_groups` was `turns`, so that older servers that still run cannot claim.
 * - `fifo_position`: the group behind which the next claim of a FIFO queue continues.
 * - Succeeded tasks have an index again instead of the table `successes`, which saved 5 % of the
 *   CPU of PostgreSQL for a task.
 */
export const oneClaimPath = [
  'DROP TABLE millrace.floors',
  `CREATE TABLE millrace.floors (
    queue_no bigint NOT NULL,
    priority smallint NOT NULL,
    due_at bigint NOT NULL,
    PRIMARY KEY (queue_no, priority)
  )`,
  `INSERT INTO millrace.floors (queue_no, priority, due_at)
    SELECT no, lane, 0 FROM millrace.queues CROSS JOIN generate_series(-2, 9) AS lane`,
  'ALTER TABLE millrace.gates RENAME COLUMN turns TO last_groups',
  `ALTER TABLE millrace.gates ADD COLUMN fifo_position text COLLATE "C" NOT NULL DEFAULT ''`,
  'DROP TABLE millrace.successes',
  `CREATE INDEX ended_succeeded ON millrace.ended (queue_no, ended_at, id) WHERE outcome = 3`,
];

/** Small tables whose rows are updated often: room for HOT updates, and early vacuum. */
export const oneClaimPathTuning = ['floors', 'gates'].map(
  (table) => `ALTER TABLE millrace.${table} SET (fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0)`,
);
