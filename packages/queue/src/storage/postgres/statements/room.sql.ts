import { statement } from '../connection/statement.js';

/** Takes the claim locks of queues, in the order of names: no deadlock. */
export const lockForClaims = statement(
  'lock_for_claims',
  `SELECT g.queue_no FROM millrace.queues q JOIN millrace.queue_locks g ON g.queue_no = q.no
  WHERE q.name = ANY($1::text[]) ORDER BY q.name FOR UPDATE OF g`,
);

/** $1 queues, $2 the first counter entry of each. */
export const pendingOf = statement(
  'pending_of',
  `SELECT q.name, coalesce((SELECT sum(b.pending) FROM millrace.counters b
    WHERE b.queue_no = q.no AND b.entry >= i.first_entry), 0)::bigint AS pending
  FROM unnest($1::text[], $2::bigint[]) AS i(name, first_entry)
    JOIN millrace.queues q ON q.name = i.name`,
);
