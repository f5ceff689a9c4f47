import { statement } from '../statement.js';

/** In the order of their names, so that nobody waits for another in a circle. */
export const lockGates = statement(
  'lock_gates',
  `SELECT g.queue_no FROM millrace.queues q JOIN millrace.gates g ON g.queue_no = q.no
  WHERE q.name = ANY($1::text[]) ORDER BY q.name FOR UPDATE OF g`,
);

export const pendingOf = statement(
  'pending_of',
  `SELECT q.name, coalesce((SELECT sum(b.pending) FROM millrace.ledger b
    WHERE b.queue_no = q.no), 0)::bigint AS pending
  FROM millrace.queues q WHERE q.name = ANY($1::text[])`,
);
