/** One SQL statement, prepared once per connection under its name. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  /** Rows are arrays: the driver is slow with objects of many columns. */
  readonly rowMode?: 'array';
  /** How long the driver waits for the result, if not as usual. */
  readonly timeoutMs?: number;
}

/** A statement whose rows are arrays. */
export function listingStatement(name: string, text: string): Statement {
  return { ...statement(name, text), rowMode: 'array' };
}

export function statement(name: string, text: string): Statement {
  return { name: `millrace_${name}`, text };
}

/** A statement that skips locked rows, and the same that waits for them. */
export interface SkippingStatement {
  readonly skipping: Statement;
  readonly waiting: Statement;
}

/** `text` says `FOR UPDATE SKIP LOCKED` where rows are taken. */
export function skippingStatement(name: string, text: string): SkippingStatement {
  return {
    skipping: statement(name, text),
    waiting: statement(`${name}_waiting`, text.replaceAll(' SKIP LOCKED', '')),
  };
}

/** Immutable columns of a task, from `tasks AS t`. */
export const fixedColumns = `t.id, t.queue, t.handler_ref, t.content_type, t.headers, t.priority,
  t.group_key, t.created_at, t.submitted_by, t.options`;

/** Columns of `live` that follow from the options of a task: labels and retain_ms. */
export const optionColumns = (options: string) => `CASE WHEN ${options} IS NOT NULL THEN
    (SELECT array_agg(x) FROM jsonb_array_elements_text(${options}::jsonb->'labels') x) END,
  CASE WHEN ${options} IS NOT NULL THEN (${options}::jsonb->>'retainMs')::bigint END`;

/** The state of a pending or running task, from a row of `live`. */
export const liveColumns = (l: string) => `${l}.stage AS status, ${l}.attempt, ${l}.total_attempts,
  ${l}.redrive_count, ${l}.updated_at, ${l}.due_at, ${l}.expires_at, ${l}.lease_token,
  ${l}.lease_expires_at, ${l}.lease_node, ${l}.lease_started_at, ${l}.lease_async, ${l}.last_error,
  NULL::bigint AS ended_at, NULL::text AS dead_reason, ${l}.flow, ${l}.wait`;

/** The same of a finished task, from a row of `ended`. */
export const endedColumns = (
  e: string,
) => `${e}.outcome AS status, ${e}.attempt, ${e}.total_attempts,
  ${e}.redrive_count, ${e}.ended_at AS updated_at, NULL::bigint AS due_at, ${e}.expires_at,
  NULL::text AS lease_token, NULL::bigint AS lease_expires_at, NULL::text AS lease_node,
  NULL::bigint AS lease_started_at, NULL::boolean AS lease_async, ${e}.last_error,
  ${e}.ended_at, ${e}.dead_reason, ${e}.flow, NULL::smallint AS wait`;

/** The history as a JSON array without its brackets. */
export const historyColumn = (of: string) => `array_to_string(${of}.attempts, ',') AS attempts`;

/** Joins `tasks` by id; OFFSET 0 keeps the planner from choosing another join order. */
export const tasksOf = (list: string) =>
  `JOIN LATERAL (SELECT * FROM millrace.tasks WHERE id = ${list}.id OFFSET 0) t ON true`;

/**
 * Finds the row to change by an id from a list. With a plain `=` the planner may scan the whole table
 * for each id when its statistics say that the table is empty: right after it was, or when all its
 * rows are dead.
 */
export const byId = (row: string, id: string) => `${row} = ANY(ARRAY[${id}])`;

/** Part of a statement: what the tasks in `gone` change in the counts of their queues. */
export const counted = (pending: string, dead: string) => `counted AS (
    INSERT INTO millrace.counters (queue_no, pending, in_flight, dead)
    SELECT queue_no, ${pending}, 0, ${dead} FROM gone GROUP BY queue_no
  )`;

/**
 * The condition of a dead task that is found by its id. `outcome = 4` would match the partial indexes
 * of dead tasks, which the planner prefers without statistics: it reads the whole DLQ for each id.
 */
export const isDead = (ended: string) => `${ended}.outcome + 0 = 4`;
