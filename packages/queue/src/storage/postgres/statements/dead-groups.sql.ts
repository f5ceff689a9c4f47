import { statement } from '../connection/statement.js';

/** Times have 13 digits for the next 260 years; with ids behind them they sort as text. */
export const deadGroups = statement(
  'dead_groups',
  `SELECT * FROM (
    SELECT error_type, handler_ref, http_status, count(*) AS count,
      min(ended_at) AS first_seen_at, max(ended_at) AS last_seen_at,
      substr(max(lpad(ended_at::text, 20, '0') || id), 21) AS sample_id
    FROM millrace.ended
    WHERE queue_no = (SELECT no FROM millrace.queues WHERE name = $1) AND outcome = 4
    GROUP BY error_type, handler_ref, http_status
  ) AS kinds
  ORDER BY count DESC, last_seen_at DESC, sample_id DESC LIMIT $2`,
);
