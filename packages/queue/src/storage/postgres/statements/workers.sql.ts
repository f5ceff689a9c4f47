import { statement } from '../connection/statement.js';

const notes = `jsonb_to_recordset($1::jsonb) AS n(queue text, key text, worker text,
    principal text, remote_ip text, seen_at bigint, claimed bigint, completed bigint,
    failed bigint, returned bigint) JOIN millrace.queues q ON q.name = n.queue`;

const sumsWith = (note: string) => `seen_at = greatest(w.seen_at, ${note}.seen_at),
  claimed = w.claimed + ${note}.claimed, completed = w.completed + ${note}.completed,
  failed = w.failed + ${note}.failed, returned = w.returned + ${note}.returned`;

/** Notes with the name of the worker, in the order of their keys, so that servers cannot deadlock. */
export const noteNamedWorkers = statement(
  'note_named_workers',
  `INSERT INTO millrace.workers AS w (queue_no, key, worker, principal, remote_ip, seen_at, claimed,
    completed, failed, returned)
  SELECT q.no, n.key, n.worker, n.principal, n.remote_ip, n.seen_at, n.claimed, n.completed,
    n.failed, n.returned
  FROM ${notes} ORDER BY q.no, n.key
  ON CONFLICT (queue_no, key) DO UPDATE SET remote_ip = excluded.remote_ip,
    ${sumsWith('excluded')}`,
);

/** Notes of workers that this server knows only by their lease tokens. */
export const noteKnownWorkers = statement(
  'note_known_workers',
  `UPDATE millrace.workers AS w SET ${sumsWith('n')} FROM ${notes}
  WHERE w.queue_no = q.no AND w.key = n.key`,
);

export const listWorkers = statement(
  'list_workers',
  `SELECT w.worker, w.principal, w.remote_ip, w.seen_at, w.claimed, w.completed, w.failed, w.returned
  FROM millrace.workers w JOIN millrace.queues q ON q.no = w.queue_no
  WHERE q.name = $1 AND w.seen_at >= $2 ORDER BY w.seen_at DESC, w.worker`,
);

export const forgetWorkers = statement(
  'forget_workers',
  'DELETE FROM millrace.workers WHERE seen_at < $1',
);
