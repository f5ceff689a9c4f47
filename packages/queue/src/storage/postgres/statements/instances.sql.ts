import { statement } from '../connection/statement.js';

/** Registers a server that claims from a queue, and counts those of the last five seconds. */
export const joinClaimants = statement(
  'join_claimants',
  `WITH own AS (
    INSERT INTO millrace.claimants (queue_no, instance, asked_at)
    SELECT no, $2, clock_timestamp() FROM millrace.queues WHERE name = $1
    ON CONFLICT (queue_no, instance) DO UPDATE SET asked_at = excluded.asked_at
    RETURNING queue_no
  )
  SELECT 1 + (SELECT count(*) FROM millrace.claimants c
    WHERE c.queue_no = own.queue_no AND c.instance <> $2
      AND c.asked_at > clock_timestamp() - interval '5 seconds') AS claimants
  FROM own`,
);

export const leaveClaimants = statement(
  'leave_claimants',
  'DELETE FROM millrace.claimants WHERE instance = $1',
);

export const forgetClaimants = statement(
  'forget_claimants',
  `DELETE FROM millrace.claimants WHERE asked_at < clock_timestamp() - interval '1 hour'`,
);

export const readTime = statement(
  'read_time',
  `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::double precision AS now,
    current_setting('transaction_read_only') AS read_only`,
);

/** The first value written stays. */
export const keepSecret = statement(
  'keep_secret',
  `INSERT INTO millrace.secrets (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`,
);

export const readSecret = statement(
  'read_secret',
  'SELECT value FROM millrace.secrets WHERE name = $1',
);
