import { statement } from '../connection/statement.js';
import { byId } from './columns.js';

/**
 * The tasks take the keys that are free. Returns those that did. $1 queues, $2 keys, $3 ids, $4
 * until, $5 handlers, $6 now. The keys must differ.
 */
export const takeKeys = statement(
  'take_keys',
  `INSERT INTO millrace.unique_keys AS u (queue_no, key, id, held_until, handler_ref)
  SELECT q.no, i.key, i.id, i.held_until, i.handler_ref
  FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[])
    AS i(queue, key, id, held_until, handler_ref)
    JOIN millrace.queues q ON q.name = i.queue
  ORDER BY q.no, i.key
  ON CONFLICT (queue_no, key) DO UPDATE SET id = excluded.id, held_until = excluded.held_until,
    handler_ref = excluded.handler_ref, status = NULL
  WHERE u.held_until IS NOT NULL AND u.held_until <= $6
  RETURNING u.id`,
);

export const keyHolders = statement(
  'key_holders',
  `SELECT i.position::integer, u.id, u.handler_ref, u.status
  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS i(queue, key, position)
    JOIN millrace.queues q ON q.name = i.queue
    JOIN millrace.unique_keys u ON u.queue_no = q.no AND u.key = i.key`,
);

export const knownQueue = statement(
  'known_queue',
  'SELECT no FROM millrace.queues WHERE name = $1',
);

/** Notes the keys of new tasks. $1 ids, $2 keys, $3 until. */
export const noteKeys = statement(
  'note_keys',
  `UPDATE millrace.live l SET unique_key = i.key, unique_until = i.held_until
  FROM unnest($1::text[], $2::text[], $3::bigint[]) AS i(id, key, held_until)
  WHERE ${byId('l.id', 'i.id')}`,
);

/** Tasks that were not stored give their keys back. */
export const giveKeysBack = statement(
  'give_keys_back',
  'DELETE FROM millrace.unique_keys WHERE id = ANY($1::text[])',
);

/** Redriven tasks lose keys that another task holds, and keys whose time is over. */
export const dropKeys = statement(
  'drop_keys',
  'UPDATE millrace.live SET unique_key = NULL, unique_until = NULL WHERE id = ANY($1::text[])',
);

export const deleteEndedKeys = statement(
  'delete_ended_keys',
  `DELETE FROM millrace.unique_keys u USING (
    SELECT queue_no, key FROM millrace.unique_keys
    WHERE held_until IS NOT NULL AND held_until <= $1 LIMIT $2
  ) o
  WHERE u.queue_no = o.queue_no AND u.key = o.key AND u.held_until <= $1`,
);

/** Part of a statement: keys without a time are free when the tasks in `rows` end. */
export const releaseKeys = (rows: string) => `released AS (
    DELETE FROM millrace.unique_keys u USING ${rows} g
    WHERE g.unique_key IS NOT NULL AND ${byId('u.queue_no', 'g.queue_no')}
      AND ${byId('u.key', 'g.unique_key')} AND u.id = g.id AND u.held_until IS NULL
  )`;

/** Part of a statement: keys of deleted tasks say what became of these. */
export const keysOfDeleted = `kept_keys AS (
    UPDATE millrace.unique_keys u SET status = g.outcome FROM gone g
    WHERE g.unique_key IS NOT NULL AND ${byId('u.id', 'g.id')} AND u.held_until IS NOT NULL
  )`;
