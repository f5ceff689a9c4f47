import { statement } from '../statement.js';
import { isReady } from './claim.js';

/** $1 queue, $2 the first entry. */
export const counts = statement(
  'counts',
  `SELECT coalesce(sum(b.pending), 0)::bigint AS pending,
    coalesce(sum(b.in_flight), 0)::bigint AS in_flight,
    coalesce(sum(b.dead), 0)::bigint AS dead
  FROM millrace.ledger b
  WHERE b.queue_no = (SELECT no FROM millrace.queues WHERE name = $1) AND b.entry >= $2`,
);

export const oldestPending = statement(
  'oldest_pending',
  `SELECT l.created_at FROM millrace.live l
  WHERE l.queue_no = (SELECT no FROM millrace.queues WHERE name = $1) AND l.stage < 2
    AND l.created_at >= 0 AND l.lease_token IS NULL
  ORDER BY l.created_at LIMIT 1`,
);

/**
 * About the same, without a walk over what is over: of the first ready tasks, of the first that waits
 * for its time, and of the first group. $1 queue, $2 priorities, $3 above which due time they are ready, $4 from which they wait.
 */
export const oldestOfFirst = statement(
  'oldest_of_first',
  `SELECT min(f.created_at) AS created_at FROM (
    SELECT r.created_at
    FROM unnest($2::smallint[], $3::bigint[]) AS p(priority, above) CROSS JOIN LATERAL (
      SELECT l.created_at FROM millrace.live l
      WHERE l.queue_no = $1 AND ${isReady} AND l.priority = p.priority AND l.group_key = ''
        AND l.due_at > p.above
      ORDER BY l.due_at LIMIT 1
    ) r
    UNION ALL
    (SELECT l.created_at FROM millrace.live l
      WHERE l.queue_no = $1 AND l.stage = 1 AND l.due_at >= $4
      ORDER BY l.due_at LIMIT 1)
    UNION ALL
    (SELECT l.created_at FROM millrace.live l
      WHERE l.queue_no = $1 AND l.stage < 2 AND l.group_key <> ''
      ORDER BY l.group_key, l.due_at LIMIT 1)
  ) f`,
);

/**
 * Makes the entries of a queue from $2 on one, and tells which it is. What others add meanwhile stays.
 */
export const foldLedger = statement(
  'fold_ledger',
  `WITH gone AS (
    DELETE FROM millrace.ledger
    WHERE queue_no = (SELECT no FROM millrace.queues WHERE name = $1) AND entry >= $2
    RETURNING queue_no, pending, in_flight, dead
  )
  INSERT INTO millrace.ledger (queue_no, pending, in_flight, dead)
  SELECT queue_no, sum(pending), sum(in_flight), sum(dead) FROM gone GROUP BY queue_no
  RETURNING entry`,
);
