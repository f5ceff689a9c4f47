/**
 * - `tasks_listed`: tasks by creation time. Tombstones are not in it: deleting a task adds no entry.
 * - `ended_dead` has the columns of all filters, so that a filter that matches little reads entries
 *   of the index, not the rows of all dead tasks.
 */
export const taskLists = [
  `CREATE INDEX tasks_listed ON millrace.tasks (queue, created_at, id) WHERE purged_at IS NULL`,
  'DROP INDEX millrace.ended_dead',
  `CREATE INDEX ended_dead ON millrace.ended (queue_no, ended_at, id, http_status, error_type,
    handler_ref) WHERE outcome = 4`,
];
