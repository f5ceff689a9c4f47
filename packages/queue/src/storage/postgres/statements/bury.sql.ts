import { skippingStatement, statement } from '../statement.js';
import { byId } from './columns.js';

/** Leaves tombstones for the rows of `gone`. */
const buried = (now: string) => `buried AS (
    UPDATE millrace.tasks t SET purged_at = ${now}, purged_status = g.outcome, payload = '',
      headers = '{}' FROM gone g WHERE ${byId('t.id', 'g.id')}
  )`;

const booked = `booked AS (
    INSERT INTO millrace.ledger (queue_no, pending, in_flight, dead)
    SELECT queue_no, 0, 0, -count(*) FROM gone GROUP BY queue_no
  )`;

/** $1 queue, $2 ids, $3 died by, $4 now. */
export const purge = statement(
  'purge',
  `WITH gone AS (
    DELETE FROM millrace.ended
    WHERE id = ANY($2::text[]) AND queue_no = $1 AND outcome = 4 AND ended_at <= $3
    RETURNING id, queue_no, outcome
  ), ${buried('$4')}, ${booked}
  SELECT id FROM gone`,
);

const numberOf = (name: string) => `(SELECT no FROM millrace.queues WHERE name = ${name})`;

const goneDead = (which: string, limit: string) => `old AS (
    SELECT id FROM millrace.ended WHERE outcome = 4 AND ${which}
    ORDER BY ended_at, id LIMIT ${limit}
    FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM millrace.ended e USING unnest(ARRAY(SELECT id FROM old)) AS o(id)
    WHERE ${byId('e.id', 'o.id')}
    RETURNING e.id, e.queue_no, e.outcome
  )`;

const isTaken = `s.queue_no = t.queue_no AND ${byId('s.ended_at', 't.ended_at')}
      AND ${byId('s.no', 't.no')}`;

/**
 * Those that succeeded together are taken from the first one on, and who takes holds their row, so
 * that nobody else does. The ids are not written again when some of them are left.
 */
const goneSucceeded = (which: string, limit: string) => `old AS MATERIALIZED (
    SELECT queue_no, ended_at, no, buried, count - buried AS waiting, ids FROM millrace.successes
    WHERE ${which}
    ORDER BY ended_at, no LIMIT ${limit}
    FOR UPDATE SKIP LOCKED
  ), taken AS MATERIALIZED (
    SELECT *, least(waiting, ${limit} - before)::integer AS taking FROM (
      SELECT *, sum(waiting) OVER (ORDER BY ended_at, no) - waiting AS before FROM old
    ) AS lined WHERE before < ${limit}
  ), emptied AS (
    DELETE FROM millrace.successes s USING taken t
    WHERE t.taking = t.waiting
      AND ${isTaken}
  ), shortened AS (
    UPDATE millrace.successes s SET buried = s.buried + t.taking FROM taken t
    WHERE t.taking < t.waiting
      AND ${isTaken}
  ), gone AS (
    DELETE FROM millrace.ended e
    USING unnest(ARRAY(SELECT unnest(ids[buried + 1:buried + taking]) FROM taken)) AS o(id)
    WHERE ${byId('e.id', 'o.id')}
    RETURNING e.id, e.queue_no, e.outcome
  )`;

/** $1 queue, $2 ended before, $3 now, $4 limit. */
export const deleteDead = skippingStatement(
  'delete_dead',
  `WITH ${goneDead(`queue_no = ${numberOf('$1')} AND ended_at < $2`, '$4')},
    ${buried('$3')}, ${booked}
  SELECT count(*) AS gone FROM gone`,
);

/** The same of those that succeeded, which nobody counts. */
export const deleteSucceeded = skippingStatement(
  'delete_succeeded',
  `WITH ${goneSucceeded(`queue_no = ${numberOf('$1')} AND ended_at < $2`, '$4')}, ${buried('$3')}
  SELECT count(*) AS gone FROM gone`,
);

/** What a deleted queue left, whose counts are gone. $1 queue, $2 now, $3 limit. */
export const clearDead = skippingStatement(
  'clear_dead',
  `WITH ${goneDead('queue_no = $1', '$3')}, ${buried('$2')} SELECT count(*) AS gone FROM gone`,
);

export const clearSucceeded = skippingStatement(
  'clear_succeeded',
  `WITH ${goneSucceeded('queue_no = $1', '$3')}, ${buried('$2')} SELECT count(*) AS gone FROM gone`,
);

/** $1 the time before which they were buried, or at it; $2 limit; $3 before which none is left. */
export const deleteTombstones = skippingStatement(
  'delete_tombstones',
  `WITH old AS (
    SELECT id FROM millrace.tasks WHERE purged_at IS NOT NULL AND purged_at >= $3
      AND purged_at <= $1
    ORDER BY purged_at, id LIMIT $2
    FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM millrace.tasks t USING unnest(ARRAY(SELECT id FROM old)) AS o(id)
    WHERE ${byId('t.id', 'o.id')} RETURNING t.purged_at
  )
  SELECT count(*) AS gone, max(purged_at) AS up_to FROM gone`,
);

export const wrecks = statement(
  'wrecks',
  'SELECT queue_no, deleted_at FROM millrace.wrecks ORDER BY queue_no',
);
export const addWreck = statement(
  'add_wreck',
  'INSERT INTO millrace.wrecks (queue_no, deleted_at) VALUES ($1, $2)',
);
export const removeWreck = statement(
  'remove_wreck',
  `DELETE FROM millrace.wrecks WHERE queue_no = $1
    AND NOT EXISTS (SELECT 1 FROM millrace.successes WHERE queue_no = $1)
    AND NOT EXISTS (SELECT 1 FROM millrace.ended WHERE queue_no = $1 AND outcome = 4)`,
);
