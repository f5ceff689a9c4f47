/** What never changes of a task, from `tasks AS t`. */
export const fixedColumns = `t.id, t.queue, t.handler_ref, t.content_type, t.headers, t.priority,
  t.group_key, t.created_at, t.submitted_by`;

/** What changes of one that waits or runs, from a row of `live`. */
export const liveColumns = (l: string) => `${l}.stage AS status, ${l}.attempt, ${l}.total_attempts,
  ${l}.redrive_count, ${l}.updated_at, ${l}.due_at, ${l}.expires_at, ${l}.lease_token,
  ${l}.lease_expires_at, ${l}.lease_node, ${l}.lease_started_at, ${l}.lease_async, ${l}.last_error,
  NULL::bigint AS ended_at, NULL::text AS dead_reason`;

/** The same of one that is over, from a row of `ended`. */
export const endedColumns = (
  e: string,
) => `${e}.outcome AS status, ${e}.attempt, ${e}.total_attempts,
  ${e}.redrive_count, ${e}.ended_at AS updated_at, NULL::bigint AS due_at, ${e}.expires_at,
  NULL::text AS lease_token, NULL::bigint AS lease_expires_at, NULL::text AS lease_node,
  NULL::bigint AS lease_started_at, NULL::boolean AS lease_async, ${e}.last_error,
  ${e}.ended_at, ${e}.dead_reason`;

/** The history as the inside of a JSON array. */
export const historyColumn = (of: string) => `array_to_string(${of}.attempts, ',') AS attempts`;

/** The row of `tasks` for each row of a list, found by its id, whatever the planner thinks of that. */
export const tasksOf = (list: string) =>
  `JOIN LATERAL (SELECT * FROM millrace.tasks WHERE id = ${list}.id OFFSET 0) t ON true`;

/**
 * Finds a row of a table that is changed by an id of a list. With a plain `=` the planner may go the
 * other way where its figures say that the table is empty: through all of it, for each id of the list.
 * They say so when it was empty a moment ago, and when all it has is dead but cannot be cleaned up.
 */
export const byId = (row: string, id: string) => `${row} = ANY(ARRAY[${id}])`;
