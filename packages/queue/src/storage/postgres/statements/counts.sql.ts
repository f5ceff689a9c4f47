import { createdMark, lowWaterMarkOf, markStepMs } from './low-water-marks.sql.js';
import { statement } from '../connection/statement.js';

/**
 * Counts of queue $1 from counter entry $2 on, and its oldest pending task. The search for that
 * task starts at a low-water mark, which it raises.
 */
export const counts = statement(
  'counts',
  `WITH queue AS MATERIALIZED (
    SELECT q.no, ${lowWaterMarkOf('q.no', createdMark)} AS mark FROM millrace.queues q WHERE q.name = $1
  ), oldest AS MATERIALIZED (
    SELECT l.created_at FROM queue q CROSS JOIN LATERAL (
      SELECT l.created_at FROM millrace.live l
      WHERE l.queue_no = q.no AND l.stage < 2 AND l.created_at >= 0
        AND l.created_at >= q.mark AND l.lease_token IS NULL
      ORDER BY l.created_at LIMIT 1
    ) l
  ), raised AS (
    UPDATE millrace.low_water_marks f SET due_at = o.created_at - ${markStepMs} FROM queue q, oldest o
    WHERE f.queue_no = q.no AND f.priority = ${createdMark} AND f.due_at = q.mark
      AND f.due_at + 2 * ${markStepMs} < o.created_at
  )
  SELECT coalesce(sum(b.pending), 0)::bigint AS pending,
    coalesce(sum(b.in_flight), 0)::bigint AS in_flight,
    coalesce(sum(b.dead), 0)::bigint AS dead,
    (SELECT created_at FROM oldest) AS oldest_pending_at
  FROM millrace.counters b
  WHERE b.queue_no = (SELECT no FROM queue) AND b.entry >= $2`,
);

/**
 * Replaces the entries of a queue from $2 on by one, and returns which. New entries stay. `xmin`: all
 * transactions below it have ended; `xmax`: none from it on had begun to write.
 */
export const foldCounters = statement(
  'fold_counters',
  `WITH gone AS (
    DELETE FROM millrace.counters
    WHERE queue_no = (SELECT no FROM millrace.queues WHERE name = $1) AND entry >= $2
    RETURNING queue_no, pending, in_flight, dead
  )
  INSERT INTO millrace.counters (queue_no, pending, in_flight, dead)
  SELECT queue_no, sum(pending), sum(in_flight), sum(dead) FROM gone GROUP BY queue_no
  RETURNING entry, txid_snapshot_xmin(txid_current_snapshot()) AS xmin,
    txid_snapshot_xmax(txid_current_snapshot()) AS xmax`,
);
