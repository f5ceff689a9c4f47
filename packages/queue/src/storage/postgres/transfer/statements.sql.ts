import { noTurn } from '../statements/low-water-marks.sql.js';
import { statement } from '../connection/statement.js';

export const movedQueues = statement(
  'moved_queues',
  `SELECT q.no, q.name, q.config, q.paused, q.version, q.incarnation, q.created_at, q.changed_at,
    k.starts, coalesce((SELECT json_object_agg(m.priority, m.last_group)
      FROM millrace.low_water_marks m
      WHERE m.queue_no = q.no AND m.last_group <> '${noTurn}')::text, '{}') AS last_groups
  FROM millrace.queues q JOIN millrace.queue_locks k ON k.queue_no = q.no ORDER BY q.name`,
);

export const movedAudit = statement(
  'moved_audit',
  `SELECT seq, at, principal, action, queue, selector, count, prev_hash, hash
  FROM millrace.audit WHERE seq > $1 ORDER BY seq LIMIT $2`,
);

export const movedSize = statement(
  'moved_size',
  'SELECT coalesce(sum(pending + in_flight + dead), 0)::bigint AS size FROM millrace.counters',
);

export const readMark = statement(
  'read_mark',
  'SELECT source, last_id, last_seq, finished FROM millrace.transfers WHERE one',
);

export const writeMark = statement(
  'write_mark',
  `INSERT INTO millrace.transfers (one, source, last_id, last_seq, finished)
  VALUES (true, $1, $2, $3, $4)
  ON CONFLICT (one) DO UPDATE SET source = excluded.source, last_id = excluded.last_id,
    last_seq = excluded.last_seq, finished = excluded.finished`,
);

const fields = `(id text, queue text, handler_ref text, priority smallint, group_key text,
  created_at bigint, purged_at bigint, purged_status smallint, submitted_by text,
  content_type text, headers text, payload text, status smallint, attempt integer,
  total_attempts integer, redrive_count integer, updated_at bigint, due_at bigint,
  expires_at bigint, started boolean, lease_token text, lease_expires_at bigint, lease_node text,
  lease_started_at bigint, lease_async boolean, settled_token text, settled_verdict smallint,
  last_error text, error_type text, http_status integer, ended_at bigint, dead_reason text,
  attempts text[], result text, progress text, unique_key text, unique_until bigint,
  holds_key boolean)`;

/** $1: the tasks as a JSON array of rows with these fields. */
export const putTasks = statement(
  'put_moved_tasks',
  `WITH input AS MATERIALIZED (
    SELECT i.*, (SELECT q.no FROM millrace.queues q WHERE q.name = i.queue) AS queue_no
    FROM json_to_recordset($1::json) AS i${fields}
  ), stored AS (
    INSERT INTO millrace.tasks (id, queue, handler_ref, priority, group_key, created_at,
      first_due_at, first_expires_at, purged_at, purged_status, submitted_by, content_type,
      headers, payload)
    SELECT id, queue, handler_ref, priority, group_key, created_at, coalesce(due_at, created_at),
      expires_at, purged_at, purged_status, submitted_by, content_type, headers,
      decode(payload, 'base64')
    FROM input
  ), living AS (
    INSERT INTO millrace.live (id, queue_no, created_at, updated_at, due_at, expires_at,
      lease_expires_at, lease_started_at, attempt, total_attempts, redrive_count, stage, priority,
      settled_verdict, started, lease_async, group_key, lease_token, lease_node, settled_token,
      http_status, error_type, last_error, attempts, progress, unique_key, unique_until)
    SELECT id, queue_no, created_at, updated_at, due_at, expires_at, lease_expires_at,
      lease_started_at, attempt, total_attempts, redrive_count, status, priority, settled_verdict,
      started, lease_async, coalesce(group_key, ''), lease_token, lease_node, settled_token,
      http_status, error_type, last_error, attempts, progress, unique_key, unique_until
    FROM input WHERE status < 3
  ), noted AS (
    INSERT INTO millrace.claims (lease_expires_at, ids)
    SELECT lease_expires_at, array_agg(id) FROM input
    WHERE lease_token IS NOT NULL GROUP BY lease_expires_at
  ), over AS (
    INSERT INTO millrace.ended (id, queue_no, ended_at, expires_at, attempt, total_attempts,
      redrive_count, outcome, http_status, settled_verdict, settled_token, dead_reason,
      handler_ref, error_type, last_error, attempts, result, progress, unique_key, unique_until)
    SELECT id, queue_no, ended_at, expires_at, attempt, total_attempts, redrive_count, status,
      http_status, settled_verdict, settled_token, dead_reason, handler_ref, error_type,
      last_error, attempts, result, progress, unique_key, unique_until
    FROM input WHERE status >= 3
  ), keys AS (
    INSERT INTO millrace.unique_keys (queue_no, key, id, held_until, handler_ref)
    SELECT queue_no, unique_key, id, unique_until, handler_ref FROM input WHERE holds_key
  )
  INSERT INTO millrace.counters (queue_no, pending, in_flight, dead)
  SELECT queue_no, count(*) FILTER (WHERE status < 2), count(*) FILTER (WHERE status = 2),
    count(*) FILTER (WHERE status = 4)
  FROM input WHERE status IS NOT NULL GROUP BY queue_no`,
);
