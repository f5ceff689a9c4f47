import { skippingStatement } from '../connection/statement.js';
import { releaseKeys } from './unique-keys.sql.js';
import { byId, counted, endedColumns, fixedColumns, tasksOf } from './columns.js';

/** Part of a statement: the pending tasks in `gone`, deleted from `live`, end as dead. */
export const pendingEnded = (
  reason: 'CANCELLED' | 'EXPIRED',
  { now, error }: { now: string; error: string },
) => `over AS (
    INSERT INTO millrace.ended (id, queue_no, ended_at, expires_at, attempt, total_attempts,
      redrive_count, outcome, http_status, settled_verdict, settled_token, dead_reason,
      handler_ref, error_type, last_error, attempts, progress, unique_key, unique_until)
    SELECT g.id, g.queue_no, ${now}, g.expires_at, g.attempt, g.total_attempts, g.redrive_count, 4,
      NULL, g.settled_verdict, g.settled_token, '${reason}', t.handler_ref, '${reason}', ${error},
      g.attempts, g.progress, g.unique_key, g.unique_until
    FROM gone g ${tasksOf('g')}
    RETURNING *
  ), ${releaseKeys('gone')}, ${counted('-count(*)', 'count(*)')}`;

/**
 * Several servers may run this at the same time: each takes other tasks.
 * $1 now, $2 limit, $3 error, $4 low-water mark.
 */
export const expireTasks = skippingStatement(
  'expire_tasks',
  `WITH past AS (
    SELECT id, expires_at FROM millrace.live
    WHERE stage < 2 AND expires_at IS NOT NULL AND expires_at >= $4 AND expires_at <= $1
      AND lease_token IS NULL
    ORDER BY expires_at, id LIMIT $2
    FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM millrace.live l USING unnest(ARRAY(SELECT id FROM past)) AS p(id)
    WHERE ${byId('l.id', 'p.id')} AND l.lease_token IS NULL RETURNING l.*
  ), ${pendingEnded('EXPIRED', { now: '$1', error: '$3' })}
  SELECT ${fixedColumns}, ${endedColumns('o')}
  FROM over o ${tasksOf('o')}
  ORDER BY o.expires_at, o.id`,
);
