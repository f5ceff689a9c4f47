import { statement } from '../statement.js';
import { byId } from './columns.js';

export const mostMadeReady = 4_096;

/**
 * Locks the gate of a queue that is not paused, so that nobody else claims from it meanwhile, and
 * makes ready what has fallen due since $3: the earliest first, at most so many. The lock may have been
 * waited for, so little else is read here: the statements after this one see what was committed
 * before it was had. A task with a group that came meanwhile has its turn at the next claim.
 */
export const openGate = statement(
  'open_gate',
  `WITH gate AS (
    SELECT q.no, g.turns, g.starts
    FROM millrace.queues q JOIN millrace.gates g ON g.queue_no = q.no
    WHERE q.name = $1 AND NOT q.paused
    FOR UPDATE OF g
  ), due AS (
    SELECT l.id FROM millrace.live l
    WHERE l.queue_no = (SELECT no FROM gate) AND l.stage = 1
      AND l.due_at >= $3 AND l.due_at <= $2
    ORDER BY l.due_at, l.id
    LIMIT ${mostMadeReady}
  ), made AS (
    UPDATE millrace.live l SET stage = 0 FROM unnest(ARRAY(SELECT id FROM due)) AS d(id)
    WHERE ${byId('l.id', 'd.id')} AND l.stage + 0 = 1
    RETURNING l.priority, l.group_key, l.due_at
  )
  SELECT gate.no, gate.turns, gate.starts,
    EXISTS (SELECT 1 FROM millrace.live l
      WHERE l.queue_no = gate.no AND l.stage < 2 AND l.group_key <> '') AS has_groups,
    (SELECT min(due_at) FROM made WHERE group_key = '') AS earliest_made,
    (SELECT count(*) FROM made) AS made
  FROM gate`,
);
