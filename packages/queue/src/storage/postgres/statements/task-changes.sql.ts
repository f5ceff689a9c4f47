import { statement } from '../connection/statement.js';
import { byId } from './columns.js';
import { pendingEnded } from './expire-tasks.sql.js';
import { lowerMarks } from './low-water-marks.sql.js';

/** Makes pending tasks dead. $1 queue, $2 ids, $3 now, $4 error. */
export const cancelPending = statement(
  'cancel_pending',
  `WITH gone AS (
    DELETE FROM millrace.live l USING unnest($2::text[]) AS p(id)
    WHERE ${byId('l.id', 'p.id')} AND l.queue_no = (SELECT no FROM millrace.queues WHERE name = $1)
      AND l.lease_token IS NULL
    RETURNING l.*
  ), ${pendingEnded('CANCELLED', { now: '$3', error: '$4' })}
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
