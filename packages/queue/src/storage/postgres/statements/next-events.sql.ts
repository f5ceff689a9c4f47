import { statement } from '../statement.js';

/** Of what is ready any one will do, so it is the one that the index of the ready has first. */
export const nextDue = statement(
  'next_due',
  `SELECT q.name, coalesce(r.due_at, s.due_at) AS due_at
  FROM millrace.queues q
  LEFT JOIN LATERAL (
    SELECT l.due_at FROM millrace.live l WHERE l.queue_no = q.no AND l.stage = 0
      AND l.lease_token IS NULL
    ORDER BY l.priority, l.group_key, l.due_at LIMIT 1
  ) r ON true
  LEFT JOIN LATERAL (
    SELECT l.due_at FROM millrace.live l WHERE l.queue_no = q.no AND l.stage = 1
    ORDER BY l.due_at LIMIT 1
  ) s ON r.due_at IS NULL
  WHERE NOT q.paused AND (r.due_at IS NOT NULL OR s.due_at IS NOT NULL)`,
);

export const nextExpiry = statement(
  'next_expiry',
  `SELECT expires_at AS at FROM millrace.live
  WHERE stage < 2 AND expires_at IS NOT NULL AND lease_token IS NULL
  ORDER BY expires_at LIMIT 1`,
);
