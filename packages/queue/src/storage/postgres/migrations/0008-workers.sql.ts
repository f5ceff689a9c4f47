/** Workers of pull queues and what they did, as noted by the servers about once a second. */
export const workers = [
  `CREATE TABLE millrace.workers (
    queue_no bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    worker text NOT NULL,
    principal text NOT NULL,
    remote_ip text,
    seen_at bigint NOT NULL,
    claimed bigint NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    returned bigint NOT NULL,
    PRIMARY KEY (queue_no, key)
  )`,
];
