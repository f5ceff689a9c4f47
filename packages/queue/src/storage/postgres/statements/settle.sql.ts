import { lowerMarks } from './low-water-marks.sql.js';
import { statement } from '../connection/statement.js';
import { byId } from './columns.js';
import { releaseKeys } from './unique-keys.sql.js';

/** The first attempt and the last 49. */
const history = (attempt: string) => `CASE WHEN cardinality(l.attempts) < 50 THEN l.attempts
    ELSE l.attempts[1:1] || l.attempts[3:] END || ARRAY[${attempt}]`;

/** An expiry that ends a lease must not meet one that was extended since. */
const isHeld = `l.lease_token = i.token
      AND (i.expired_by IS NULL OR l.lease_expires_at <= i.expired_by)`;

/**
 * Ends claims whose lease tokens are still valid. The ids must differ. Returns how many it ended, and
 * which if not all. $3: 0 succeeded, 1 retry, 2 dead, 3 handed back. $11: JSON text, "" for a result
 * that was too large.
 */
export const settle = statement(
  'settle',
  `WITH input AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::smallint[], $4::bigint[], $5::bigint[],
      $6::text[], $7::text[], $8::text[], $9::text[], $10::integer[], $11::text[], $12::bigint[])
    AS i(id, token, verdict, now, due_at, reason, attempt, error, error_type, http_status, result,
      expired_by)
  ), back AS (
    UPDATE millrace.live l SET
      stage = CASE WHEN i.due_at <= i.now THEN 0 ELSE 1 END,
      started = true, due_at = i.due_at, updated_at = i.now,
      attempt = l.attempt - CASE i.verdict WHEN 3 THEN 1 ELSE 0 END,
      total_attempts = l.total_attempts - CASE i.verdict WHEN 3 THEN 1 ELSE 0 END,
      lease_token = NULL, lease_expires_at = NULL, lease_node = NULL, lease_started_at = NULL,
      lease_async = NULL,
      settled_token = i.token, settled_verdict = i.verdict,
      http_status = CASE WHEN i.error IS NULL THEN l.http_status ELSE i.http_status END,
      error_type = coalesce(i.error_type, l.error_type),
      last_error = coalesce(i.error, l.last_error), attempts = ${history('i.attempt')}
    FROM input i
    WHERE i.verdict IN (1, 3) AND ${byId('l.id', 'i.id')} AND ${isHeld}
    RETURNING l.id, l.queue_no, l.stage, l.priority, l.group_key, l.due_at, l.created_at
  ), gone AS (
    DELETE FROM millrace.live l USING input i
    WHERE i.verdict IN (0, 2) AND ${byId('l.id', 'i.id')} AND ${isHeld}
    RETURNING l.id, l.queue_no, i.now AS ended_at, l.expires_at, l.attempt, l.total_attempts,
      l.redrive_count, CASE i.verdict WHEN 0 THEN 3 ELSE 4 END AS outcome,
      i.verdict AS settled_verdict, i.token AS settled_token, i.reason AS dead_reason,
      CASE WHEN i.error IS NULL THEN l.http_status ELSE i.http_status END AS http_status,
      coalesce(i.error_type, l.error_type) AS error_type,
      coalesce(i.error, l.last_error) AS last_error, ${history('i.attempt')} AS attempts,
      l.progress, i.result, l.unique_key, l.unique_until
  ), over AS (
    INSERT INTO millrace.ended (id, queue_no, ended_at, expires_at, attempt, total_attempts,
      redrive_count, outcome, http_status, settled_verdict, settled_token, dead_reason,
      handler_ref, error_type, last_error, attempts, progress, result, unique_key, unique_until)
    SELECT g.id, g.queue_no, g.ended_at, g.expires_at, g.attempt, g.total_attempts,
      g.redrive_count, g.outcome, g.http_status, g.settled_verdict, g.settled_token,
      g.dead_reason,
      CASE g.outcome WHEN 4 THEN (SELECT t.handler_ref FROM millrace.tasks t WHERE t.id = g.id)
        ELSE '' END,
      g.error_type, g.last_error, g.attempts, g.progress, g.result, g.unique_key,
      g.unique_until
    FROM gone g
  ), ${releaseKeys('gone')}, ${lowerMarks('back')}, counted AS (
    INSERT INTO millrace.counters (queue_no, pending, in_flight, dead)
    SELECT queue_no, sum(pending), -count(*), sum(dead) FROM (
      SELECT queue_no, 1 AS pending, 0 AS dead FROM back
      UNION ALL SELECT queue_no, 0, CASE outcome WHEN 4 THEN 1 ELSE 0 END FROM gone
    ) AS settled GROUP BY queue_no
  ), settled AS MATERIALIZED (
    SELECT id FROM back UNION ALL SELECT id FROM gone
  )
  SELECT count(*) AS count,
    CASE WHEN count(*) < cardinality($1::text[]) THEN string_agg(id, ',') END AS settled
  FROM settled`,
);
