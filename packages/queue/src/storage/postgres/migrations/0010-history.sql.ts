/**
 * - `history`: what one run of a server counted of a queue in one step, as JSON.
 * - `history_totals`: the same since the queue was created.
 */
export const history = [
  `CREATE TABLE millrace.history (
    queue_no bigint NOT NULL,
    step_s integer NOT NULL,
    at bigint NOT NULL,
    instance text COLLATE "C" NOT NULL,
    point text NOT NULL,
    PRIMARY KEY (queue_no, step_s, at, instance)
  )`,
  `CREATE TABLE millrace.history_totals (
    queue_no bigint PRIMARY KEY,
    succeeded bigint NOT NULL,
    failed bigint NOT NULL,
    dead bigint NOT NULL
  )`,
];
