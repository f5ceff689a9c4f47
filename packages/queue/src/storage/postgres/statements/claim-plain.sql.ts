import { listingStatement } from '../statement.js';
import { claimPicked, isDue, isReady, lanes, room } from './claim.js';

/** The tasks without a group had the last turn in each priority that was claimed from. */
const turned = `turned AS (
    UPDATE millrace.gates g SET turns = (g.turns::jsonb || had.turns)::text
    FROM (
      SELECT jsonb_object_agg(p.priority::text, '') AS turns
      FROM (SELECT DISTINCT priority FROM claimed) c JOIN lanes p ON p.priority = c.priority
      WHERE p.turn <> ''
    ) had
    WHERE g.queue_no = $1 AND had.turns IS NOT NULL
  )`;

/** Where no task with a group waits, nobody has to take turns: priorities, then due time and id. */
export const claimPlain = listingStatement(
  'claim_plain',
  `WITH ${lanes}, picked AS MATERIALIZED (
    SELECT r.id, r.due_at
    FROM lanes p CROSS JOIN LATERAL (
      SELECT l.id, l.due_at FROM millrace.live l
      WHERE l.queue_no = $1 AND ${isReady} AND l.priority = p.priority AND l.group_key = ''
        AND (l.due_at, l.id) > (p.floor_due, p.floor_id) AND ${isDue}
      ORDER BY l.due_at, l.id
      LIMIT $2
    ) r
    ORDER BY p.place, r.due_at, r.id
    LIMIT ${room}
  ), ${claimPicked({ beside: turned, withGroups: false })}`,
);
