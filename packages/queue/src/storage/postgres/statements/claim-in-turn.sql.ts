import { listingStatement } from '../statement.js';
import { claimFrom, isDue, isReady, lanes } from './claim.js';

const readyIn = (lane: string) =>
  `l.queue_no = $1 AND ${isReady} AND l.priority = ${lane}.priority`;

/**
 * In each priority the groups take turns from where the last turn ended. It leaps from group to
 * group in the index, to as many as may be claimed: it costs by what it picks, not by what is ready.
 * `sweep` 0: groups after the last turn, 2: those up to it; tasks without a group are in between.
 */
const candidates = `${lanes}, turns(priority, turn, place, sweep, group_key, groups) AS (
    SELECT p.priority, p.turn, p.place, f.sweep, f.group_key, 1
    FROM lanes p CROSS JOIN LATERAL (
      (SELECT 0 AS sweep, l.group_key FROM millrace.live l
        WHERE ${readyIn('p')} AND l.group_key > p.turn
        ORDER BY l.group_key LIMIT 1)
      UNION ALL
      (SELECT 2, l.group_key FROM millrace.live l
        WHERE ${readyIn('p')} AND l.group_key > '' AND l.group_key <= p.turn
        ORDER BY l.group_key LIMIT 1)
      LIMIT 1
    ) f
    UNION ALL
    SELECT t.priority, t.turn, t.place, f.sweep, f.group_key, t.groups + 1
    FROM turns t CROSS JOIN LATERAL (
      (SELECT t.sweep, l.group_key FROM millrace.live l
        WHERE ${readyIn('t')} AND l.group_key > t.group_key
          AND (t.sweep = 0 OR l.group_key <= t.turn)
        ORDER BY l.group_key LIMIT 1)
      UNION ALL
      (SELECT 2, l.group_key FROM millrace.live l
        WHERE t.sweep = 0 AND ${readyIn('t')} AND l.group_key > '' AND l.group_key <= t.turn
        ORDER BY l.group_key LIMIT 1)
      LIMIT 1
    ) f
    WHERE t.groups < $2
  ), groups AS (
    SELECT priority, place, 1 AS sweep, '' AS group_key, above, up_to FROM lanes
    UNION ALL
    SELECT priority, place, sweep, group_key, -1, ${Number.MAX_SAFE_INTEGER} FROM turns
  ), candidates AS (
    SELECT g.priority, g.place, g.group_key, g.sweep AS turn_group, r.id, r.due_at
    FROM groups g CROSS JOIN LATERAL (
      SELECT l.id, l.due_at FROM millrace.live l
      WHERE ${readyIn('g')} AND l.group_key = g.group_key
        AND l.due_at > g.above AND l.due_at <= g.up_to AND ${isDue}
      ORDER BY l.due_at, l.id
      LIMIT $2
    ) r
  )`;

export const claimInTurn = listingStatement('claim_in_turn', claimFrom(candidates));
