/**
 * `records`: the schedules and jobs of queues. `state` changes often; the body is large at times, and
 * an update that leaves it alone does not copy it.
 */
export const records = [
  `CREATE TABLE millrace.records (
    kind text COLLATE "C" NOT NULL,
    queue_no bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    body text NOT NULL,
    state text NOT NULL,
    revision bigint NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (kind, queue_no, name)
  )`,
];
