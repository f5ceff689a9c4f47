/** Lists tasks by creation time. Tombstones are not in it: deleting a task adds no entry. */
export const taskLists = [
  `CREATE INDEX tasks_listed ON millrace.tasks (queue, created_at, id) WHERE purged_at IS NULL`,
];
