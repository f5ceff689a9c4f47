import { listingStatement, statement } from '../statement.js';
import { claimPicked, pickPlain } from './claim.js';

export const lockGate = statement(
  'lock_gate',
  'SELECT 1 FROM millrace.gates WHERE queue_no = $1 FOR UPDATE',
);

/** The queue is as the last claim found it: not paused, nobody's turn but that of all, none due. */
const isAsBefore = `EXISTS (SELECT 1 FROM millrace.queues q JOIN millrace.gates g ON g.queue_no = q.no
      WHERE q.no = $1 AND NOT q.paused AND g.turns = $13)
    AND NOT EXISTS (SELECT 1 FROM millrace.live l
      WHERE l.queue_no = $1 AND l.stage < 2 AND l.group_key <> '')
    AND NOT EXISTS (SELECT 1 FROM millrace.live l
      WHERE l.queue_no = $1 AND l.stage = 1 AND l.due_at >= $15 AND l.due_at <= $4)`;

/**
 * A plain claim that is sent right behind the lock of the gate, so it finds out itself whether it may.
 * What the tasks are is read when others may claim again. $13: the turns, $14: the number of the claim,
 * $15: the due time before which nothing waits.
 */
export const claimQuick = statement(
  'claim_quick',
  `WITH ${pickPlain(isAsBefore)}, ${claimPicked({ isPlain: true, number: '$14' })}`,
);

/** What never changes of the tasks of a claim: $1 the end of its leases, $2 its number. */
export const readClaimed = listingStatement(
  'read_claimed',
  `SELECT id, handler_ref, content_type, nullif(headers, '{}'), created_at, submitted_by, payload
  FROM millrace.tasks
  WHERE id = ANY(ARRAY(SELECT unnest(c.ids) FROM millrace.claims c
    WHERE c.lease_expires_at = $1 AND c.no = $2))`,
);
