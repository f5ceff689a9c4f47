import { statement } from '../statement.js';
import { isReady } from './claim.js';

/**
 * When the first task of each queue is due, of all but some ($1). Of what is ready any one will do, so
 * it is the one that the index of the ready has first.
 */
export const nextDue = statement(
  'next_due',
  `SELECT q.name, coalesce(r.due_at, s.due_at) AS due_at
  FROM millrace.queues q
  LEFT JOIN LATERAL (
    SELECT l.due_at FROM millrace.live l WHERE l.queue_no = q.no AND ${isReady}
    ORDER BY l.priority, l.group_key, l.due_at LIMIT 1
  ) r ON true
  LEFT JOIN LATERAL (
    SELECT l.due_at FROM millrace.live l WHERE l.queue_no = q.no AND l.stage = 1
    ORDER BY l.due_at LIMIT 1
  ) s ON r.due_at IS NULL
  WHERE q.no <> ALL($1::bigint[]) AND NOT q.paused
    AND (r.due_at IS NOT NULL OR s.due_at IS NOT NULL)`,
);

/**
 * The same for those ($1) of which it is known above which due time their ready tasks are, as a list
 * by priority from high to low ($2), and those that wait for their time ($3).
 */
export const nextDueAbove = statement(
  'next_due_above',
  `SELECT q.name, coalesce(r.due_at, g.due_at, s.due_at) AS due_at
  FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS f(no, above, scheduled_from)
  JOIN millrace.queues q ON q.no = f.no
  LEFT JOIN LATERAL (
    SELECT l.due_at FROM unnest(f.above::bigint[]) WITH ORDINALITY AS p(above, place)
    CROSS JOIN LATERAL (
      SELECT l.due_at FROM millrace.live l
      WHERE l.queue_no = f.no AND ${isReady} AND l.priority = (10 - p.place)::smallint
        AND l.group_key = '' AND l.due_at > p.above
      ORDER BY l.due_at LIMIT 1
    ) l LIMIT 1
  ) r ON true
  LEFT JOIN LATERAL (
    SELECT l.due_at FROM millrace.live l
    WHERE l.queue_no = f.no AND l.stage < 2 AND l.stage + 0 = 0 AND l.group_key <> ''
    ORDER BY l.group_key, l.due_at LIMIT 1
  ) g ON r.due_at IS NULL
  LEFT JOIN LATERAL (
    SELECT l.due_at FROM millrace.live l
    WHERE l.queue_no = f.no AND l.stage = 1 AND l.due_at >= f.scheduled_from
    ORDER BY l.due_at LIMIT 1
  ) s ON r.due_at IS NULL AND g.due_at IS NULL
  WHERE NOT q.paused AND (r.due_at IS NOT NULL OR g.due_at IS NOT NULL OR s.due_at IS NOT NULL)`,
);

/** $1: before which time none is left. */
export const nextExpiry = statement(
  'next_expiry',
  `SELECT expires_at AS at FROM millrace.live
  WHERE stage < 2 AND expires_at IS NOT NULL AND expires_at >= $1 AND lease_token IS NULL
  ORDER BY expires_at LIMIT 1`,
);
