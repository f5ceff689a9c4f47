/**
 * - `floors`: up to which due time the ready tasks of a queue were claimed, by priority. It says where a
 *   server that has just started may begin to look. What it leaves out is found a little later.
 * - `live_oldest` was `live_pending`. It is for one question alone, which says that `created_at` is not
 *   negative: the planner, when it takes the table to be empty, does not mistake it for others.
 */
export const floors = [
  `CREATE TABLE millrace.floors (
    queue_no bigint PRIMARY KEY,
    above text NOT NULL
  )`,
  'DROP INDEX millrace.live_pending',
  `CREATE INDEX live_oldest ON millrace.live (queue_no, created_at)
    WHERE stage < 2 AND created_at >= 0`,
];
