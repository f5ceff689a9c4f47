import { skippingStatement, statement } from '../connection/statement.js';
import { byId, counted, isDead } from './columns.js';
import { keysOfDeleted } from './unique-keys.sql.js';

const numberOf = (name: string) => `(SELECT no FROM millrace.queues WHERE name = ${name})`;

/** Leaves tombstones for the rows of `gone`. */
const tombstonesLeft = (now: string) => `tombstones AS (
    UPDATE millrace.tasks t SET purged_at = ${now}, purged_status = g.outcome, payload = '',
      headers = '{}' FROM gone g WHERE ${byId('t.id', 'g.id')}
  ), ${keysOfDeleted}`;

/** Deletes the finished tasks that ended first. */
const oldestDeleted = (outcome: 3 | 4, where: string, limit: string) => `old AS (
    SELECT id FROM millrace.ended WHERE outcome = ${outcome} AND ${where}
    ORDER BY ended_at, id LIMIT ${limit}
    FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM millrace.ended e USING unnest(ARRAY(SELECT id FROM old)) AS o(id)
    WHERE ${byId('e.id', 'o.id')}
    RETURNING e.id, e.queue_no, e.outcome, e.unique_key
  )`;

/** $1 queue, $2 ids, $3 died by, $4 now. */
export const purge = statement(
  'purge',
  `WITH gone AS (
    DELETE FROM millrace.ended e
    WHERE e.id = ANY($2::text[]) AND e.queue_no = $1 AND ${isDead('e')} AND e.ended_at <= $3
    RETURNING e.id, e.queue_no, e.outcome, e.unique_key
  ), ${tombstonesLeft('$4')}, ${counted('0', '-count(*)')}
  SELECT id FROM gone`,
);

const deleteFinished = (name: string, outcome: 3 | 4, more: string) =>
  skippingStatement(
    name,
    `WITH ${oldestDeleted(outcome, `queue_no = ${numberOf('$1')} AND ended_at < $2`, '$4')},
      ${tombstonesLeft('$3')}${more}
    SELECT count(*) AS gone FROM gone`,
  );

/** $1 queue, $2 ended before, $3 now, $4 limit. Succeeded tasks are not counted. */
export const deleteDead = deleteFinished('delete_dead', 4, `, ${counted('0', '-count(*)')}`);
export const deleteSucceeded = deleteFinished('delete_succeeded', 3, '');

/** What a deleted queue left, by outcome; its counts are gone. $1 queue, $2 now, $3 limit. */
export const deleteOfDeletedQueue = ([3, 4] as const).map((outcome) =>
  skippingStatement(
    `delete_of_deleted_queue_${outcome}`,
    `WITH ${oldestDeleted(outcome, 'queue_no = $1', '$3')}, ${tombstonesLeft('$2')}
    SELECT count(*) AS gone FROM gone`,
  ),
);

/** $1 purged at or before, $2 limit, $3 low-water mark. */
export const deleteTombstones = skippingStatement(
  'delete_tombstones',
  `WITH old AS (
    SELECT id FROM millrace.tasks WHERE purged_at IS NOT NULL AND purged_at >= $3
      AND purged_at <= $1
    ORDER BY purged_at, id LIMIT $2
    FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM millrace.tasks t USING unnest(ARRAY(SELECT id FROM old)) AS o(id)
    WHERE ${byId('t.id', 'o.id')} RETURNING t.purged_at
  )
  SELECT count(*) AS gone, max(purged_at) AS up_to FROM gone`,
);

/** Deleted queues whose finished tasks are not all deleted yet. */
export const deletedQueues = statement(
  'deleted_queues',
  'SELECT queue_no, deleted_at FROM millrace.deleted_queues ORDER BY queue_no',
);
export const addDeletedQueue = statement(
  'add_deleted_queue',
  'INSERT INTO millrace.deleted_queues (queue_no, deleted_at) VALUES ($1, $2)',
);
export const removeDeletedQueue = statement(
  'remove_deleted_queue',
  `DELETE FROM millrace.deleted_queues WHERE queue_no = $1
    AND NOT EXISTS (SELECT 1 FROM millrace.ended WHERE queue_no = $1 AND outcome = 3)
    AND NOT EXISTS (SELECT 1 FROM millrace.ended WHERE queue_no = $1 AND outcome = 4)`,
);
