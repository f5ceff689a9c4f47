/**
 * `rows` was `records`, and has the history, its totals and the workers too. Keys of the history are
 * `step time instance`, so that they sort by time.
 */
export const rows = [
  'ALTER TABLE millrace.records RENAME TO rows',
  'ALTER TABLE millrace.rows RENAME COLUMN name TO key',
  'ALTER TABLE millrace.rows RENAME COLUMN state TO value',
  'ALTER TABLE millrace.rows ALTER COLUMN body DROP NOT NULL',
  `INSERT INTO millrace.rows (kind, queue_no, key, value, revision, created_at)
    SELECT 'history', queue_no, lpad(step_s::text, 5, '0') || ' ' || lpad(at::text, 15, '0') || ' '
      || instance, point, 1, at FROM millrace.history
    UNION ALL
    SELECT 'totals', queue_no, '', json_build_object('succeeded', succeeded, 'failed', failed,
      'dead', dead)::text, 1, 0 FROM millrace.history_totals
    UNION ALL
    SELECT 'worker', queue_no, key, json_build_object('identity', json_build_object('worker',
      worker, 'principal', principal, 'remoteIp', remote_ip), 'seenAt', seen_at, 'claimed', claimed,
      'completed', completed, 'failed', failed, 'returned', returned)::text, 1, seen_at
    FROM millrace.workers`,
  'DROP TABLE millrace.history, millrace.history_totals, millrace.workers',
];
