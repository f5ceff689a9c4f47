import { statement } from '../connection/statement.js';
import { fixedColumns } from './columns.js';

const found = `t.purged_at, t.purged_status,
  coalesce(l.stage, e.outcome) AS status,
  coalesce(l.attempt, e.attempt) AS attempt,
  coalesce(l.total_attempts, e.total_attempts) AS total_attempts,
  coalesce(l.redrive_count, e.redrive_count) AS redrive_count,
  coalesce(l.updated_at, e.ended_at) AS updated_at,
  coalesce(l.expires_at, e.expires_at) AS expires_at,
  l.due_at, l.lease_token, l.lease_expires_at, l.lease_node, l.lease_started_at, l.lease_async,
  coalesce(l.last_error, e.last_error) AS last_error,
  e.ended_at, e.dead_reason,
  coalesce(l.settled_token, e.settled_token) AS settled_token,
  coalesce(l.settled_verdict, e.settled_verdict) AS settled_verdict`;

const states = `LEFT JOIN LATERAL (SELECT * FROM millrace.live WHERE id = t.id OFFSET 0) l ON true
  LEFT JOIN LATERAL (SELECT * FROM millrace.ended WHERE id = t.id OFFSET 0) e ON true`;
const from = `FROM millrace.tasks t ${states} WHERE t.id = ANY($1::text[])`;

const whole = `${fixedColumns}, ${found}, t.payload,
  array_to_string(coalesce(l.attempts, e.attempts), ',') AS attempts,
  e.result, coalesce(l.progress, e.progress) AS progress,
  coalesce(l.unique_key, e.unique_key) AS unique_key`;

/** Tasks and tombstones, without payload and history. */
export const findTasks = statement('find_tasks', `SELECT ${fixedColumns}, ${found} ${from}`);

export const findWholeTasks = statement('find_whole_tasks', `SELECT ${whole} ${from}`);

/** Everything of the tasks after $1, in the order of their ids. */
export const movedTasks = statement(
  'moved_tasks',
  `SELECT ${whole}, coalesce(l.started OR l.lease_token IS NOT NULL, false) AS started,
    coalesce(l.unique_until, e.unique_until) AS unique_until
  FROM (SELECT * FROM millrace.tasks WHERE id > $1 ORDER BY id LIMIT $2) t ${states}
  ORDER BY t.id`,
);
