import { statement } from '../connection/statement.js';
import { lowWaterMarkOf, isReady, scheduledMark } from './low-water-marks.sql.js';

/**
 * When the next task of each queue is due that is not paused. Any ready task will do, so it is the
 * first that an index has.
 */
export const nextDue = statement(
  'next_due',
  `SELECT q.name, coalesce(r.due_at, g.due_at, s.due_at) AS due_at
  FROM millrace.queues q
  LEFT JOIN LATERAL (
    SELECT l.due_at FROM millrace.low_water_marks p CROSS JOIN LATERAL (
      SELECT l.due_at FROM millrace.live l
      WHERE l.queue_no = q.no AND ${isReady} AND l.priority = p.priority AND l.group_key = ''
        AND l.due_at >= p.due_at
      ORDER BY l.due_at LIMIT 1
    ) l
    WHERE p.queue_no = q.no AND p.priority >= 0 LIMIT 1
  ) r ON true
  LEFT JOIN LATERAL (
    SELECT l.due_at FROM millrace.live l
    WHERE l.queue_no = q.no AND l.stage < 2 AND l.stage + 0 = 0 AND l.group_key <> ''
    ORDER BY l.group_key LIMIT 1
  ) g ON r.due_at IS NULL
  LEFT JOIN LATERAL (
    SELECT l.due_at FROM millrace.live l
    WHERE l.queue_no = q.no AND l.stage = 1 AND l.due_at >= ${lowWaterMarkOf('q.no', scheduledMark)}
    ORDER BY l.due_at LIMIT 1
  ) s ON r.due_at IS NULL AND g.due_at IS NULL
  WHERE NOT q.paused AND coalesce(r.due_at, g.due_at, s.due_at) IS NOT NULL`,
);

/** The first expiry of a pending task at or after $1. */
export const nextExpiry = statement(
  'next_expiry',
  `SELECT expires_at AS at FROM millrace.live
  WHERE stage < 2 AND expires_at IS NOT NULL AND expires_at >= $1 AND lease_token IS NULL
  ORDER BY expires_at LIMIT 1`,
);
