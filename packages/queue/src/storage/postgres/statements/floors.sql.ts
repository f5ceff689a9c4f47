import { statement } from '../statement.js';
import { isReady } from './claim.js';

/**
 * The first that is ready below each floor, and the first that waits for its time below that of those.
 * $1 queue, $2 priorities and $3 their floors, $4 that of what waits (it has no priority), $5 and $6
 * from which due time and before which to look.
 */
export const lookBelow = statement(
  'look_below',
  `SELECT p.priority, r.due_at
  FROM unnest($2::smallint[], $3::bigint[]) AS p(priority, floor) CROSS JOIN LATERAL (
    SELECT l.due_at FROM millrace.live l
    WHERE l.queue_no = $1 AND ${isReady} AND l.priority = p.priority AND l.group_key = ''
      AND l.due_at >= $5 AND l.due_at < least(p.floor, $6)
    ORDER BY l.due_at LIMIT 1
  ) r
  UNION ALL
  SELECT NULL, s.due_at FROM (
    SELECT l.due_at FROM millrace.live l
    WHERE l.queue_no = $1 AND l.stage = 1 AND l.due_at >= $5 AND l.due_at < least($4::bigint, $6)
    ORDER BY l.due_at LIMIT 1
  ) s`,
);

/** For servers that begin later. No row where the queue is gone. */
export const shareFloors = statement(
  'share_floors',
  `INSERT INTO millrace.floors (queue_no, above)
  SELECT no, $2 FROM millrace.queues WHERE no = $1
  ON CONFLICT (queue_no) DO UPDATE SET above = excluded.above`,
);

export const readFloors = statement(
  'read_floors',
  `SELECT q.name, f.queue_no, f.above
  FROM millrace.floors f JOIN millrace.queues q ON q.no = f.queue_no`,
);
