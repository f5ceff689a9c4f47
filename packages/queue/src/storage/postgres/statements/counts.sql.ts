import { statement } from '../statement.js';

export const counts = statement(
  'counts',
  `SELECT coalesce(sum(b.pending), 0)::bigint AS pending,
    coalesce(sum(b.in_flight), 0)::bigint AS in_flight,
    coalesce(sum(b.dead), 0)::bigint AS dead,
    (SELECT l.created_at FROM millrace.live l
      WHERE l.queue_no = (SELECT no FROM millrace.queues WHERE name = $1) AND l.stage < 2
        AND l.lease_token IS NULL
      ORDER BY l.created_at LIMIT 1) AS oldest_pending_at
  FROM millrace.ledger b
  WHERE b.queue_no = (SELECT no FROM millrace.queues WHERE name = $1)`,
);

/** Makes the entries of a queue one. What others add meanwhile stays. */
export const foldLedger = statement(
  'fold_ledger',
  `WITH gone AS (
    DELETE FROM millrace.ledger
    WHERE queue_no = (SELECT no FROM millrace.queues WHERE name = $1)
    RETURNING queue_no, pending, in_flight, dead
  )
  INSERT INTO millrace.ledger (queue_no, pending, in_flight, dead)
  SELECT queue_no, sum(pending), sum(in_flight), sum(dead) FROM gone GROUP BY queue_no`,
);
