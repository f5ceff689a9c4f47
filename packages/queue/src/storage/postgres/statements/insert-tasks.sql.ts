import { tombstoneMs } from '../../port/task-store.js';
import { lowerMarks } from './low-water-marks.sql.js';
import { statement } from '../connection/statement.js';

/**
 * Stores tasks whose ids differ. An id that exists keeps its task, unless it is a tombstone that is
 * a day old. The queues cannot be deleted before the commit.
 */
export const insertTasks = statement(
  'insert_tasks',
  `WITH input AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::smallint[], $5::text[],
      $6::bigint[], $7::bigint[], $8::text[], $9::text[], $10::text[], $11::integer[],
      $12::integer[], $14::bigint[])
    AS i(id, queue, handler_ref, priority, group_key, due_at, expires_at, submitted_by,
      content_type, headers, payload_start, payload_bytes, now)
  ), known AS (
    SELECT no, name FROM millrace.queues WHERE name = ANY($2::text[]) FOR KEY SHARE
  ), stored AS (
    INSERT INTO millrace.tasks AS t (id, queue, handler_ref, priority, group_key, created_at,
      first_due_at, first_expires_at, submitted_by, content_type, headers, payload)
    SELECT i.id, i.queue, i.handler_ref, i.priority, i.group_key, i.now,
      i.due_at, i.expires_at, i.submitted_by, i.content_type, i.headers,
      substring($13::bytea FROM i.payload_start FOR i.payload_bytes)
    FROM input i JOIN known k ON k.name = i.queue
    ON CONFLICT (id) DO UPDATE SET queue = excluded.queue, handler_ref = excluded.handler_ref,
      priority = excluded.priority, group_key = excluded.group_key,
      created_at = excluded.created_at, first_due_at = excluded.first_due_at,
      first_expires_at = excluded.first_expires_at, purged_at = NULL, purged_status = NULL,
      submitted_by = excluded.submitted_by, content_type = excluded.content_type,
      headers = excluded.headers, payload = excluded.payload
    WHERE t.purged_at <= excluded.created_at - ${tombstoneMs}
    RETURNING t.id, t.queue, t.priority, t.group_key, t.created_at, t.first_due_at,
      t.first_expires_at
  ), waiting AS (
    INSERT INTO millrace.live (id, queue_no, created_at, updated_at, due_at, expires_at, attempt,
      total_attempts, redrive_count, stage, priority, started, group_key, attempts)
    SELECT s.id, k.no, s.created_at, s.created_at, s.first_due_at, s.first_expires_at, 0,
      0, 0, CASE WHEN s.first_due_at <= s.created_at THEN 0 ELSE 1 END, s.priority, false,
      coalesce(s.group_key, ''), '{}'
    FROM stored s JOIN known k ON k.name = s.queue
    RETURNING queue_no, stage, priority, group_key, due_at, created_at
  ), ${lowerMarks('waiting')}, counted AS (
    INSERT INTO millrace.counters (queue_no, pending, in_flight, dead)
    SELECT queue_no, count(*), 0, 0 FROM waiting GROUP BY queue_no
  )
  SELECT (SELECT string_agg(id, ',') FROM stored) AS stored,
    (SELECT string_agg(name, ',') FROM known) AS known`,
);
