import { skippingStatement, statement } from '../statement.js';

/** Leaves tombstones for the rows of `gone`. */
const buried = (now: string) => `buried AS (
    UPDATE millrace.tasks t SET purged_at = ${now}, purged_status = g.status, payload = '',
      headers = '{}' FROM gone g WHERE t.id = g.id
  ), booked AS (
    INSERT INTO millrace.ledger (queue_no, pending, in_flight, dead)
    SELECT queue_no, 0, 0, -count(*) FROM gone WHERE status = 4 GROUP BY queue_no
  )`;

/** $1 queue, $2 ids, $3 died by, $4 now. */
export const purge = statement(
  'purge',
  `WITH gone AS (
    DELETE FROM millrace.ended
    WHERE id = ANY($2::text[]) AND queue_no = $1 AND status = 4 AND ended_at <= $3
    RETURNING id, queue_no, status
  ), ${buried('$4')}
  SELECT id FROM gone`,
);

/** $1 queue, $2 status, $3 ended before, $4 now, $5 limit. */
export const deleteFinished = skippingStatement(
  'delete_finished',
  `WITH old AS (
    SELECT id FROM millrace.ended
    WHERE queue_no = (SELECT no FROM millrace.queues WHERE name = $1) AND status = $2
      AND ended_at < $3
    ORDER BY ended_at, id LIMIT $5
    FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM millrace.ended e USING unnest(ARRAY(SELECT id FROM old)) AS o(id)
    WHERE e.id = o.id
    RETURNING e.id, e.queue_no, e.status
  ), ${buried('$4')}
  SELECT count(*) AS gone FROM gone`,
);

/** The same for what a deleted queue left. $1 queue, $2 now, $3 limit. */
export const clearWreck = skippingStatement(
  'clear_wreck',
  `WITH old AS (
    SELECT id FROM millrace.ended WHERE queue_no = $1
    ORDER BY status, ended_at, id LIMIT $3
    FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM millrace.ended e USING unnest(ARRAY(SELECT id FROM old)) AS o(id)
    WHERE e.id = o.id
    RETURNING e.id, e.queue_no, e.status
  ), buried AS (
    UPDATE millrace.tasks t SET purged_at = $2, purged_status = g.status, payload = '',
      headers = '{}' FROM gone g WHERE t.id = g.id
  )
  SELECT count(*) AS gone FROM gone`,
);

/** $1 the time before which they were buried, or at it; $2 limit. */
export const deleteTombstones = skippingStatement(
  'delete_tombstones',
  `WITH old AS (
    SELECT id FROM millrace.tasks WHERE purged_at IS NOT NULL AND purged_at <= $1
    ORDER BY purged_at, id LIMIT $2
    FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM millrace.tasks t USING unnest(ARRAY(SELECT id FROM old)) AS o(id)
    WHERE t.id = o.id RETURNING t.id
  )
  SELECT count(*) AS gone FROM gone`,
);

export const wrecks = statement(
  'wrecks',
  'SELECT queue_no, deleted_at FROM millrace.wrecks ORDER BY queue_no',
);
export const addWreck = statement(
  'add_wreck',
  'INSERT INTO millrace.wrecks (queue_no, deleted_at) VALUES ($1, $2)',
);
export const removeWreck = statement(
  'remove_wreck',
  `DELETE FROM millrace.wrecks WHERE queue_no = $1
    AND NOT EXISTS (SELECT 1 FROM millrace.ended WHERE queue_no = $1)`,
);
