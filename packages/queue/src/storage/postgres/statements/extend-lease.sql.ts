import { statement } from '../connection/statement.js';
import { fixedColumns, liveColumns, tasksOf } from './columns.js';

/** $3: when it expires; $7: an expiry that may become earlier. */
export const extendLease = statement(
  'extend_lease',
  `WITH moved AS (
    UPDATE millrace.live SET
      lease_expires_at = CASE lease_expires_at WHEN $7 THEN $3
        ELSE greatest(lease_expires_at, $3) END,
      lease_async = $4, updated_at = $5,
      progress = coalesce($6, progress)
    WHERE id = $1 AND lease_token = $2
    RETURNING *
  ), noted AS (
    INSERT INTO millrace.claims (lease_expires_at, ids)
    SELECT lease_expires_at, ARRAY[id] FROM moved
  )
  SELECT ${fixedColumns}, ${liveColumns('m')} FROM moved m ${tasksOf('m')}`,
);
