import { lowerMarks } from './low-water-marks.sql.js';
import { statement } from '../connection/statement.js';
import { byId, isDead, tasksOf } from './columns.js';

/** $1 queue, $2 ids that differ, $3 when each is due, $4 died by, $5 now. */
export const redrive = statement(
  'redrive',
  `WITH input AS (
    SELECT * FROM unnest($2::text[], $3::bigint[]) AS i(id, due_at)
  ), back AS (
    DELETE FROM millrace.ended e USING input i
    WHERE ${byId('e.id', 'i.id')} AND e.queue_no = $1 AND ${isDead('e')} AND e.ended_at <= $4
    RETURNING e.*, i.due_at
  ), waiting AS (
    INSERT INTO millrace.live (id, queue_no, created_at, updated_at, due_at, attempt,
      total_attempts, redrive_count, stage, priority, settled_verdict, started, group_key,
      settled_token, http_status, error_type, last_error, attempts, progress, unique_key,
      unique_until)
    SELECT b.id, b.queue_no, t.created_at, $5, b.due_at, 0, b.total_attempts,
      b.redrive_count + 1, CASE WHEN b.due_at <= $5 THEN 0 ELSE 1 END, t.priority,
      b.settled_verdict, false, coalesce(t.group_key, ''), b.settled_token, b.http_status,
      b.error_type, b.last_error, b.attempts, b.progress, b.unique_key, b.unique_until
    FROM back b ${tasksOf('b')}
    RETURNING id, queue_no, stage, priority, group_key, due_at, created_at, unique_key,
      unique_until
  ), ${lowerMarks('waiting')}, counted AS (
    INSERT INTO millrace.counters (queue_no, pending, in_flight, dead)
    SELECT $1, count(*), 0, -count(*) FROM waiting HAVING count(*) > 0
  )
  SELECT w.id, t.queue, t.handler_ref, w.unique_key, w.unique_until
  FROM waiting w ${tasksOf('w')}`,
);
