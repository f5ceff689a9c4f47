/**
 * - `result`: JSON text of a task that succeeded; `progress`: the last report of its handler.
 * - `unique_keys`: which task of a queue holds a key; `held_until` null: until the task ends.
 *   `status` is the last status of a holder that was deleted.
 */
export const results = [
  `ALTER TABLE millrace.live ADD COLUMN progress text,
    ADD COLUMN unique_key text COLLATE "C", ADD COLUMN unique_until bigint`,
  `ALTER TABLE millrace.ended ADD COLUMN progress text, ADD COLUMN result text,
    ADD COLUMN unique_key text COLLATE "C", ADD COLUMN unique_until bigint`,
  `CREATE TABLE millrace.unique_keys (
    queue_no bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    held_until bigint,
    handler_ref text COLLATE "C" NOT NULL,
    status smallint,
    PRIMARY KEY (queue_no, key)
  )`,
  `CREATE INDEX unique_keys_timed ON millrace.unique_keys (held_until)
    WHERE held_until IS NOT NULL`,
  `CREATE INDEX unique_keys_by_task ON millrace.unique_keys (id)`,
];

/** Nothing is looked for by these columns. */
export const resultsTuning = [
  ...['progress', 'unique_key', 'unique_until'].map(
    (column) => `ALTER TABLE millrace.live ALTER COLUMN ${column} SET STATISTICS 0`,
  ),
  ...['progress', 'result', 'unique_key', 'unique_until'].map(
    (column) => `ALTER TABLE millrace.ended ALTER COLUMN ${column} SET STATISTICS 0`,
  ),
];
