import { statement } from '../connection/statement.js';
import { createdMark, noTurn } from './low-water-marks.sql.js';

const columns = 'no, name, config, paused, version, incarnation, created_at, changed_at';

export const listQueues = statement(
  'list_queues',
  `SELECT ${columns} FROM millrace.queues ORDER BY name`,
);

export const getQueues = statement(
  'get_queues',
  `SELECT ${columns} FROM millrace.queues WHERE name = ANY($1::text[])`,
);

export const lockQueue = statement(
  'lock_queue',
  `SELECT ${columns} FROM millrace.queues WHERE name = $1 FOR UPDATE`,
);

/** With its claim lock, and its low-water marks with the last groups in $8. No row: another server created it first. */
export const createQueue = statement(
  'create_queue',
  `WITH queue AS (
    INSERT INTO millrace.queues (name, config, paused, version, incarnation, created_at, changed_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (name) DO NOTHING
    RETURNING ${columns}
  ), claim_lock AS (
    INSERT INTO millrace.queue_locks (queue_no, starts, fifo_position) SELECT no, $9, '' FROM queue
  ), marks AS (
    INSERT INTO millrace.low_water_marks (queue_no, priority, due_at, last_group)
    SELECT no, kind, 0, coalesce($8::jsonb->>(kind::text), '${noTurn}')
    FROM queue CROSS JOIN generate_series(${createdMark}, 9) AS kind
  )
  SELECT * FROM queue`,
);

export const configureQueue = statement(
  'configure_queue',
  `UPDATE millrace.queues SET config = $2, version = version + 1, changed_at = $3
  WHERE no = $1 RETURNING ${columns}`,
);

export const pauseQueue = statement(
  'pause_queue',
  'UPDATE millrace.queues SET paused = $2 WHERE name = $1 RETURNING no',
);

export const queueIsEmpty = statement(
  'queue_is_empty',
  `SELECT coalesce(sum(pending), 0) = 0 AND coalesce(sum(in_flight), 0) = 0
    AND coalesce(sum(dead), 0) = 0 AS empty
  FROM millrace.counters WHERE queue_no = $1`,
);

export const deleteQueue = statement(
  'delete_queue',
  `WITH claim_lock AS (DELETE FROM millrace.queue_locks WHERE queue_no = $1),
    counters AS (DELETE FROM millrace.counters WHERE queue_no = $1),
    marks AS (DELETE FROM millrace.low_water_marks WHERE queue_no = $1),
    rows AS (DELETE FROM millrace.rows
      WHERE kind IN ('schedule', 'job', 'history', 'totals', 'worker') AND queue_no = $1),
    keys AS (DELETE FROM millrace.unique_keys WHERE queue_no = $1),
    claimants AS (DELETE FROM millrace.claimants WHERE queue_no = $1)
  DELETE FROM millrace.queues WHERE no = $1`,
);

/** Keeps the queue from being deleted before the commit. */
export const keepQueue = statement(
  'keep_queue',
  'SELECT no FROM millrace.queues WHERE name = $1 FOR KEY SHARE',
);
