import { statement } from '../statement.js';
import { byId, tasksOf } from './columns.js';
import { lowerMarks } from './low-water-marks.sql.js';
import { releaseKeys } from './unique-keys.sql.js';

/** Makes pending tasks dead. $1 queue, $2 ids, $3 now, $4 error. */
export const cancelPending = statement(
  'cancel_pending',
  `WITH gone AS (
    DELETE FROM millrace.live l USING unnest($2::text[]) AS p(id)
    WHERE ${byId('l.id', 'p.id')} AND l.queue_no = (SELECT no FROM millrace.queues WHERE name = $1)
      AND l.lease_token IS NULL
    RETURNING l.*
  ), over AS (
    INSERT INTO millrace.ended (id, queue_no, ended_at, expires_at, attempt, total_attempts,
      redrive_count, outcome, http_status, settled_verdict, settled_token, dead_reason,
      handler_ref, error_type, last_error, attempts, progress, unique_key, unique_until)
    SELECT g.id, g.queue_no, $3, g.expires_at, g.attempt, g.total_attempts, g.redrive_count, 4,
      NULL, g.settled_verdict, g.settled_token, 'CANCELLED', t.handler_ref, 'CANCELLED', $4,
      g.attempts, g.progress, g.unique_key, g.unique_until
    FROM gone g ${tasksOf('g')}
    RETURNING id
  ), ${releaseKeys('gone')}, counted AS (
    INSERT INTO millrace.ledger (queue_no, pending, in_flight, dead)
    SELECT queue_no, -count(*), 0, count(*) FROM gone GROUP BY queue_no
  )
  SELECT id FROM over`,
);

/** $1 id, $2 due time, $3 priority (null: as it is), $4 now. No row: it is not pending. */
export const updatePending = statement(
  'update_pending',
  `WITH changed AS (
    UPDATE millrace.live l SET due_at = coalesce($2::bigint, l.due_at),
      priority = coalesce($3::smallint, l.priority), updated_at = $4,
      stage = CASE WHEN coalesce($2::bigint, l.due_at) <= $4 THEN 0 ELSE 1 END
    WHERE l.id = $1 AND l.lease_token IS NULL
    RETURNING l.id, l.queue_no, l.stage, l.priority, l.group_key, l.due_at, l.created_at
  ), ${lowerMarks('changed')}, kept AS (
    UPDATE millrace.tasks t SET priority = c.priority FROM changed c
    WHERE ${byId('t.id', 'c.id')} AND t.priority <> c.priority
  )
  SELECT id FROM changed`,
);
