import { tombstoneMs } from '../port/task-store.js';
import { recorded } from './events.js';
import { lowerMarks } from './low-water-marks.js';
import { channels } from './notifications.js';
import { optionColumns } from './statement.js';

const maxDelayMs = 30 * 86_400_000;
const maxMs = 315_360_000_000;

/** Refuses a task like a submit does. `millrace.refuse` only raises. */
const refuse = `CREATE OR REPLACE FUNCTION millrace.refuse(code text, detail text) RETURNS void
  LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION '%: %', code, detail USING ERRCODE = 'invalid_parameter_value';
END $$`;

/** A whole number of the options within limits; null if it is absent. */
const number = `CREATE OR REPLACE FUNCTION millrace.option_number(options jsonb, name text, low bigint,
  high bigint) RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  given jsonb := options->name;
  value numeric;
BEGIN
  IF given IS NULL THEN RETURN NULL; END IF;
  IF jsonb_typeof(given) = 'number' THEN value := (given #>> '{}')::numeric; END IF;
  IF value IS NULL OR value <> trunc(value) OR value < low OR value > high THEN
    PERFORM millrace.refuse('INVALID_TASK', format('/%s must be a whole number from %s to %s.', name,
      low, high));
  END IF;
  RETURN value::bigint;
END $$`;

/** A text of the options within a length; null if it is absent. */
const text = `CREATE OR REPLACE FUNCTION millrace.option_text(options jsonb, name text, longest integer)
  RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  given jsonb := options->name;
BEGIN
  IF given IS NULL THEN RETURN NULL; END IF;
  IF jsonb_typeof(given) <> 'string' OR given = '""' OR octet_length(given #>> '{}') > longest
    OR (given #>> '{}') ~ '[[:cntrl:]]' THEN
    PERFORM millrace.refuse('INVALID_TASK', format(
      '/%s must be a text of 1 to %s bytes without control characters.', name, longest));
  END IF;
  RETURN given #>> '{}';
END $$`;

/** A time of the options in milliseconds; null if it is absent. */
const time = `CREATE OR REPLACE FUNCTION millrace.option_time(options jsonb, name text)
  RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  given text := options->>name;
BEGIN
  IF given IS NULL THEN RETURN NULL; END IF;
  IF given !~ '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?(Z|[+-]\\d\\d:\\d\\d)$' THEN
    PERFORM millrace.refuse('INVALID_TASK', format(
      '/%s must be a time such as 2030-01-31T08:00:00Z.', name));
  END IF;
  RETURN floor(extract(epoch FROM given::timestamptz) * 1000)::bigint;
EXCEPTION WHEN datetime_field_overflow OR invalid_datetime_format THEN
  PERFORM millrace.refuse('INVALID_TASK', format('/%s is not a time.', name));
  RETURN NULL;
END $$`;

/** A ULID of a time in milliseconds. */
const ulid = `CREATE OR REPLACE FUNCTION millrace.new_ulid(at bigint) RETURNS text
  LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  digits constant text := '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
  random bytea := decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex');
  result text := '';
  place integer;
BEGIN
  FOR i IN REVERSE 9..0 LOOP
    result := result || substr(digits, ((at >> (5 * i)) & 31)::integer + 1, 1);
  END LOOP;
  -- The version bits of a UUID are in bytes 6 and 8, which are left out.
  FOREACH place IN ARRAY ARRAY[0, 1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18] LOOP
    result := result || substr(digits, (get_byte(random, place) & 31) + 1, 1);
  END LOOP;
  RETURN result;
END $$`;

const names = `'id', 'headers', 'run_at', 'delay_ms', 'expires_at', 'priority', 'group_key',
  'unique_key', 'unique_for_ms', 'max_attempts', 'backoff', 'timeout_ms', 'retain_ms', 'labels'`;

/** Checks the options that are stored with the task, and returns them as they are stored. */
const taskOptions = `CREATE OR REPLACE FUNCTION millrace.task_options(options jsonb) RETURNS text
  LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  backoff jsonb := options->'backoff';
  labels jsonb := options->'labels';
  stored jsonb;
BEGIN
  IF backoff IS NOT NULL THEN
    IF jsonb_typeof(backoff) <> 'object' OR coalesce(backoff->>'kind', '') NOT IN ('exponential', 'fixed')
      OR backoff->'ms' IS NULL OR backoff - ARRAY['kind', 'ms', 'max_ms', 'jitter'] <> '{}' THEN
      PERFORM millrace.refuse('INVALID_TASK',
        '/backoff must have kind (exponential or fixed) and ms, and may have max_ms and jitter.');
    END IF;
    backoff := jsonb_strip_nulls(jsonb_build_object('kind', backoff->>'kind',
      'ms', millrace.option_number(backoff, 'ms', 0, 604800000),
      'maxMs', millrace.option_number(backoff, 'max_ms', 0, 604800000),
      'jitter', CASE jsonb_typeof(backoff->'jitter') WHEN 'boolean'
        THEN CASE WHEN (backoff->>'jitter')::boolean THEN 1 ELSE 0 END
        WHEN 'number' THEN (backoff->>'jitter')::numeric END));
    IF (backoff->>'jitter')::numeric NOT BETWEEN 0 AND 1 THEN
      PERFORM millrace.refuse('INVALID_TASK', '/backoff/jitter must be from 0 to 1.');
    END IF;
  END IF;
  IF labels IS NOT NULL AND (jsonb_typeof(labels) <> 'array' OR jsonb_array_length(labels) > 10
    OR EXISTS (SELECT 1 FROM jsonb_array_elements(labels) l WHERE jsonb_typeof(l) <> 'string'
      OR length(l #>> '{}') NOT BETWEEN 1 AND 128 OR (l #>> '{}') ~ '[[:cntrl:]]')) THEN
    PERFORM millrace.refuse('INVALID_TASK', '/labels must be a list of at most 10 texts.');
  END IF;
  stored := jsonb_strip_nulls(jsonb_build_object(
    'maxAttempts', millrace.option_number(options, 'max_attempts', 1, 1000),
    'backoff', backoff,
    'timeoutMs', millrace.option_number(options, 'timeout_ms', 10, 86400000),
    'retainMs', millrace.option_number(options, 'retain_ms', 0, ${maxMs}),
    'labels', CASE WHEN labels <> '[]' THEN labels END));
  RETURN CASE WHEN stored <> '{}' THEN stored::text END;
END $$`;

const insert = `WITH stored AS (
    INSERT INTO millrace.tasks AS t (id, queue, handler_ref, priority, group_key, created_at,
      first_due_at, first_expires_at, submitted_by, content_type, headers, payload, options)
    VALUES (task_id, v_queue, ref, v_priority, v_group, v_now, v_due, v_expires,
      left('postgres:' || session_user, 128), 'application/json', v_headers, v_payload, v_options)
    ON CONFLICT (id) DO UPDATE SET queue = excluded.queue, handler_ref = excluded.handler_ref,
      priority = excluded.priority, group_key = excluded.group_key,
      created_at = excluded.created_at, first_due_at = excluded.first_due_at,
      first_expires_at = excluded.first_expires_at, purged_at = NULL, purged_status = NULL,
      submitted_by = excluded.submitted_by, content_type = excluded.content_type,
      headers = excluded.headers, payload = excluded.payload, options = excluded.options
    WHERE t.purged_at <= excluded.created_at - ${tombstoneMs}
    RETURNING t.id
  ), waiting AS (
    INSERT INTO millrace.live (id, queue_no, created_at, updated_at, due_at, expires_at, attempt,
      total_attempts, redrive_count, stage, priority, started, group_key, attempts, unique_key,
      unique_until, labels, retain_ms)
    SELECT s.id, v_no, v_now, v_now, v_due, v_expires, 0, 0, 0,
      CASE WHEN v_due <= v_now THEN 0 ELSE 1 END, v_priority, false, coalesce(v_group, ''), '{}',
      v_key, v_until, ${optionColumns('v_options')}
    FROM stored s
    RETURNING id, queue_no, stage, priority, group_key, due_at, created_at
  ), ${recorded({ type: 'submitted', from: 'waiting', at: 'r.created_at', attempt: '0' })},
  ${lowerMarks('waiting')}, counted AS (
    INSERT INTO millrace.counters (queue_no, pending, in_flight, dead)
    SELECT queue_no, count(*), 0, 0 FROM waiting GROUP BY queue_no
  )
  SELECT count(*) FROM waiting INTO v_stored`;

/**
 * Submits a task in the transaction of the caller: it is there, and servers are notified, when that
 * commits. It runs with the rights of the owner, so that a role needs only EXECUTE on it.
 */
const submit = `CREATE OR REPLACE FUNCTION millrace.submit(queue text, ref text,
  payload jsonb DEFAULT NULL, options jsonb DEFAULT '{}') RETURNS text LANGUAGE plpgsql
  SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_queue text := queue;
  v_no bigint;
  v_config jsonb;
  v_given jsonb := coalesce(options, '{}');
  v_unknown text;
  v_now bigint := floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;
  v_priority smallint;
  v_group text;
  v_due bigint;
  v_run_at bigint;
  v_delay bigint;
  v_expires bigint;
  v_headers text := coalesce(options->'headers', '{}')::text;
  v_payload bytea := coalesce(convert_to(payload::text, 'UTF8'), '');
  v_options text;
  v_key text;
  v_for bigint;
  v_until bigint;
  v_holder text;
  v_stored integer;
  task_id text;
BEGIN
  SELECT q.no, q.config::jsonb INTO v_no, v_config FROM millrace.queues q WHERE q.name = v_queue
    FOR KEY SHARE;
  IF v_no IS NULL THEN
    PERFORM millrace.refuse('QUEUE_NOT_FOUND', format(
      'There is no queue %s. Create it with: ctl queue create %s --pull', v_queue, v_queue));
  END IF;
  IF jsonb_typeof(v_given) <> 'object' THEN
    PERFORM millrace.refuse('INVALID_TASK', 'The options must be a JSON object.');
  END IF;
  SELECT k INTO v_unknown FROM jsonb_object_keys(v_given) k WHERE k NOT IN (${names}) LIMIT 1;
  IF v_unknown IS NOT NULL THEN
    PERFORM millrace.refuse('INVALID_TASK', format('/%s is not an option of a task.', v_unknown));
  END IF;
  IF ref IS NULL OR ref !~ '^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,255}$' THEN
    PERFORM millrace.refuse('INVALID_TASK',
      'The handler must be 1 to 256 of A-Z a-z 0-9 . _ : / @ - and begin with a letter or digit.');
  END IF;
  IF jsonb_typeof(v_headers::jsonb) <> 'object' OR length(v_headers) > 16384 OR EXISTS (
    SELECT 1 FROM jsonb_each(v_headers::jsonb) h WHERE jsonb_typeof(h.value) <> 'string'
      OR h.key !~ '^[!#$%&''*+.^_\`|~0-9A-Za-z-]+$' OR (h.value #>> '{}') ~ '[^ -~]') THEN
    PERFORM millrace.refuse('INVALID_TASK', '/headers must be an object of visible ASCII texts.');
  END IF;
  v_priority := coalesce(millrace.option_number(v_given, 'priority', 0, 9), 4);
  v_group := millrace.option_text(v_given, 'group_key', 256);
  v_delay := millrace.option_number(v_given, 'delay_ms', 0, ${maxDelayMs});
  v_run_at := millrace.option_time(v_given, 'run_at');
  IF v_delay IS NOT NULL AND v_run_at IS NOT NULL THEN
    PERFORM millrace.refuse('INVALID_TASK', 'Give /delay_ms or /run_at, not both.');
  END IF;
  IF v_run_at - v_now > ${maxDelayMs} THEN
    PERFORM millrace.refuse('INVALID_TASK', '/run_at must be at most 30 days ahead.');
  END IF;
  v_due := greatest(v_now, coalesce(v_run_at, v_now + coalesce(v_delay, 0)));
  v_expires := millrace.option_time(v_given, 'expires_at');
  IF v_expires <= v_now THEN
    PERFORM millrace.refuse('INVALID_TASK', '/expires_at must be in the future.');
  END IF;
  v_options := millrace.task_options(v_given);
  v_key := millrace.option_text(v_given, 'unique_key', 256);
  v_for := millrace.option_number(v_given, 'unique_for_ms', 1, ${maxDelayMs});
  IF v_for IS NOT NULL AND v_key IS NULL THEN
    PERFORM millrace.refuse('INVALID_TASK', '/unique_for_ms needs a unique_key.');
  END IF;
  v_until := v_now + v_for;
  IF length(v_payload) > (v_config #>> '{limits,max_payload_bytes}')::bigint THEN
    PERFORM millrace.refuse('PAYLOAD_TOO_LARGE', format('The payload has %s bytes; the queue %s takes '
      'at most %s.', length(v_payload), v_queue, v_config #>> '{limits,max_payload_bytes}'));
  END IF;
  task_id := upper(millrace.option_text(v_given, 'id', 26));
  IF task_id !~ '^[0-7][0-9A-HJKMNP-TV-Z]{25}$' THEN
    PERFORM millrace.refuse('INVALID_TASK', '/id must be a ULID.');
  END IF;
  SELECT t.queue INTO v_unknown FROM millrace.tasks t
    WHERE t.id = task_id AND (t.purged_at IS NULL OR t.purged_at > v_now - ${tombstoneMs});
  IF v_unknown = v_queue THEN RETURN task_id; END IF;
  IF v_unknown IS NOT NULL THEN
    PERFORM millrace.refuse('ID_CONFLICT', format('The id %s cannot be used in this queue; submit '
      'with a new one.', task_id));
  END IF;
  task_id := coalesce(task_id, millrace.new_ulid(v_now));
  IF v_key IS NOT NULL THEN
    INSERT INTO millrace.unique_keys AS u (queue_no, key, id, held_until, handler_ref)
      VALUES (v_no, v_key, task_id, v_until, ref)
      ON CONFLICT (queue_no, key) DO UPDATE SET id = excluded.id, held_until = excluded.held_until,
        handler_ref = excluded.handler_ref, status = NULL
      WHERE u.held_until IS NOT NULL AND u.held_until <= v_now;
    IF NOT FOUND THEN
      SELECT u.id INTO v_holder FROM millrace.unique_keys u WHERE u.queue_no = v_no AND u.key = v_key;
      RETURN v_holder;
    END IF;
  END IF;
  IF (v_config #>> '{limits,max_pending}')::bigint > 0 AND (SELECT coalesce(sum(c.pending), 0)
    FROM millrace.counters c WHERE c.queue_no = v_no) >= (v_config #>> '{limits,max_pending}')::bigint
  THEN
    PERFORM millrace.refuse('RATE_LIMITED', format(
      'The queue %s holds as many pending tasks as it may; submit again later.', v_queue));
  END IF;
  ${insert};
  -- Another transaction used the id since it was looked for.
  IF v_stored = 0 THEN RETURN task_id; END IF;
  PERFORM pg_notify('${channels.work}', 'sql ' || v_queue);
  RETURN task_id;
END $$`;

/** The functions that are part of the schema, in the order in which they are created. */
export const functions = [refuse, number, text, time, ulid, taskOptions, submit].concat(
  [
    'refuse(text, text)',
    'option_number(jsonb, text, bigint, bigint)',
    'option_text(jsonb, text, integer)',
    'option_time(jsonb, text)',
    'new_ulid(bigint)',
    'task_options(jsonb)',
    'submit(text, text, jsonb, jsonb)',
  ].map((name) => `REVOKE ALL ON FUNCTION millrace.${name} FROM PUBLIC`),
);

/** A role needs EXECUTE on submit alone: the name of a schema opens none of its tables. */
export const openSchema = 'GRANT USAGE ON SCHEMA millrace TO PUBLIC';
