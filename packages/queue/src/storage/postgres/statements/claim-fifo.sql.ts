import { listingStatement } from '../statement.js';
import { claimFrom, isDue, isReady, lanes } from './claim.js';

/**
 * Of each group only its head: none while one is in flight, the first of those that were started and
 * wait, or the first of all. Groups are looked at from $13 on, at most $14 of them. Tasks without a
 * group are free.
 */
const candidates = `${lanes}, walk(group_key, groups) AS (
    (SELECT l.group_key, 1 FROM millrace.live l
      WHERE l.queue_no = $1 AND l.stage < 2 AND l.group_key <> '' AND l.group_key > $13
      ORDER BY l.group_key LIMIT 1)
    UNION ALL
    SELECT n.group_key, w.groups + 1
    FROM walk w CROSS JOIN LATERAL (
      SELECT l.group_key FROM millrace.live l
      WHERE l.queue_no = $1 AND l.stage < 2 AND l.group_key <> '' AND l.group_key > w.group_key
      ORDER BY l.group_key LIMIT 1
    ) n
    WHERE w.groups < $14
  ), heads AS (
    SELECT h.id
    FROM walk w CROSS JOIN LATERAL (
      (SELECT l.id, 0 AS choice, l.due_at FROM millrace.live l
        WHERE l.queue_no = $1 AND l.stage < 2 AND l.started AND l.group_key <> ''
          AND l.group_key = w.group_key
        ORDER BY l.due_at, l.id LIMIT 1)
      UNION ALL
      (SELECT l.id, 1, l.due_at FROM millrace.live l
        WHERE l.queue_no = $1 AND l.stage < 2 AND l.group_key <> '' AND l.group_key = w.group_key
        ORDER BY l.due_at, l.id LIMIT 1)
      LIMIT 1
    ) h
    WHERE NOT EXISTS (SELECT 1 FROM millrace.live r
      WHERE r.queue_no = $1 AND r.stage = 2 AND r.group_key <> ''
        AND r.group_key = w.group_key)
  ), candidates AS (
    SELECT p.priority, p.place, l.group_key,
      CASE WHEN l.group_key > p.turn THEN 0 ELSE 2 END AS turn_group, l.id, l.due_at
    FROM heads h
    JOIN LATERAL (SELECT * FROM millrace.live WHERE id = h.id OFFSET 0) l ON true
    JOIN lanes p ON p.priority = l.priority
    WHERE l.stage = 0 AND ${isDue}
    UNION ALL
    SELECT p.priority, p.place, '', 1, r.id, r.due_at
    FROM lanes p CROSS JOIN LATERAL (
      SELECT l.id, l.due_at FROM millrace.live l
      WHERE l.queue_no = $1 AND ${isReady} AND l.priority = p.priority AND l.group_key = ''
        AND l.due_at > p.above AND l.due_at <= p.up_to AND ${isDue}
      ORDER BY l.due_at, l.id
      LIMIT $2
    ) r
  )`;

const walked = '(SELECT count(*) AS walked, max(group_key) AS walked_to FROM walk)';

export const claimFifo = listingStatement('claim_fifo', claimFrom(candidates, walked));
