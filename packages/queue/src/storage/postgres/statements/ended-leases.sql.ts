import { statement } from '../connection/statement.js';
import { byId, fixedColumns, historyColumn, liveColumns, tasksOf } from './columns.js';

/**
 * Reads the claims whose leases expire first, from $3 to $1, at most $2, and deletes those of which no
 * lease is held any more. Extending a lease adds a row of its own.
 */
export const sweepClaims = statement(
  'sweep_claims',
  `WITH seen AS MATERIALIZED (
    SELECT c.lease_expires_at, c.no,
      EXISTS (SELECT 1 FROM millrace.live l
        WHERE l.id = ANY(c.ids) AND l.lease_token IS NOT NULL
          AND l.lease_expires_at = c.lease_expires_at) AS is_held
    FROM (
      SELECT * FROM millrace.claims WHERE lease_expires_at >= $3 AND lease_expires_at <= $1
      ORDER BY lease_expires_at, no LIMIT $2
    ) c
  ), deleted AS (
    DELETE FROM millrace.claims c USING seen s
    WHERE NOT s.is_held AND ${byId('c.lease_expires_at', 's.lease_expires_at')}
      AND ${byId('c.no', 's.no')}
  )
  SELECT count(*) AS seen, min(lease_expires_at) FILTER (WHERE is_held) AS held_until FROM seen`,
);

/** $1 now, $2 limit, $3 how many claims to read, $4 from which expiry on. */
export const endedLeases = statement(
  'ended_leases',
  `WITH past AS (
    SELECT * FROM millrace.live
    WHERE id = ANY(ARRAY(
      SELECT unnest(c.ids) FROM (
        SELECT ids FROM millrace.claims WHERE lease_expires_at >= $4 AND lease_expires_at <= $1
        ORDER BY lease_expires_at, no LIMIT $3
      ) c
    )) AND lease_token IS NOT NULL AND lease_expires_at <= $1
    ORDER BY lease_expires_at, id LIMIT $2
  )
  SELECT ${fixedColumns}, ${liveColumns('p')}, ${historyColumn('p')}, t.payload
  FROM past p ${tasksOf('p')}
  ORDER BY p.lease_expires_at, p.id`,
);
