import { statement } from '../connection/statement.js';

/** Keeps the queues from being deleted before the commit. */
const queues = `queues AS MATERIALIZED (
    SELECT no, name FROM millrace.queues WHERE name = ANY($1::text[]) ORDER BY no FOR KEY SHARE
  )`;

/** $1 queues, $2 steps, $3 times, $4 instances, $5 points. */
export const writeHistory = statement(
  'write_history',
  `WITH ${queues}
  INSERT INTO millrace.history (queue_no, step_s, at, instance, point)
  SELECT q.no, i.step_s, i.at, i.instance, i.point
  FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::text[], $5::text[])
    AS i(queue, step_s, at, instance, point)
  JOIN queues q ON q.name = i.queue
  ON CONFLICT (queue_no, step_s, at, instance) DO UPDATE SET point = excluded.point`,
);

/** $1 queues, $2 succeeded, $3 failed, $4 dead. */
export const addHistoryTotals = statement(
  'add_history_totals',
  `WITH ${queues}
  INSERT INTO millrace.history_totals AS t (queue_no, succeeded, failed, dead)
  SELECT q.no, i.succeeded, i.failed, i.dead
  FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[])
    AS i(queue, succeeded, failed, dead)
  JOIN queues q ON q.name = i.queue ORDER BY q.no
  ON CONFLICT (queue_no) DO UPDATE SET succeeded = t.succeeded + excluded.succeeded,
    failed = t.failed + excluded.failed, dead = t.dead + excluded.dead`,
);

/** $1 queues, $2 step, $3 before. */
export const pruneHistory = statement(
  'prune_history',
  `DELETE FROM millrace.history WHERE step_s = $2 AND at < $3
    AND queue_no IN (SELECT no FROM millrace.queues WHERE name = ANY($1::text[]))`,
);

/** $1 queue, $2 step, $3 from. */
export const readHistory = statement(
  'read_history',
  `WITH queue AS (SELECT no FROM millrace.queues WHERE name = $1)
  (SELECT at, instance, point FROM millrace.history
    WHERE queue_no = (SELECT no FROM queue) AND step_s = $2 AND at < $3
    ORDER BY at DESC, instance DESC LIMIT 1)
  UNION ALL
  (SELECT at, instance, point FROM millrace.history
    WHERE queue_no = (SELECT no FROM queue) AND step_s = $2 AND at >= $3)
  ORDER BY at, instance`,
);

export const readHistoryTotals = statement(
  'read_history_totals',
  `SELECT succeeded, failed, dead FROM millrace.history_totals
  WHERE queue_no = (SELECT no FROM millrace.queues WHERE name = $1)`,
);
