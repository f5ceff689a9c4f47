import { type TaskStore, tombstoneMs } from '../port/task-store.js';
import type { Connections } from './connections.js';
import { LowWaterMark, lowerMarks } from './low-water-marks.js';
import {
  byId,
  counted,
  isDead,
  optionColumns,
  skippingStatement,
  statement,
  tasksOf,
  type SkippingStatement,
  type Statement,
} from './statement.js';
import { forgetClaimants } from './notifications.js';
import { flowRowsDeleted } from './flow.sql.js';
import { deleteEndedKeys, keysOfDeleted } from './inserts.js';

const batchSize = 1_000;

/** Replaces finished tasks by tombstones when their retention ends, and deletes old tombstones. */
export class Retention {
  readonly #tombstones: LowWaterMark;

  constructor(
    private readonly connections: Connections,
    private readonly monotonic: () => number,
    private readonly skip: (statement: SkippingStatement) => Statement,
  ) {
    this.#tombstones = new LowWaterMark(monotonic);
  }

  /** There are tombstones of this time. It is below the mark if a clock was set back. */
  purgedAt(time: number): void {
    this.#tombstones.lower(time);
  }

  deleteFinished(request: Parameters<TaskStore['deleteFinished']>[0]): Promise<number> {
    this.purgedAt(request.now);
    const values = [request.queue, request.endedBefore, request.now, request.limit];
    return this.#count(request.status === 'DEAD' ? deleteDead : deleteSucceeded, values);
  }

  async deleteRetained({ now, limit }: { now: number; limit: number }): Promise<number> {
    const [row] = await this.connections.query<{ gone: number }>(this.skip(deleteRetained), [
      now,
      limit,
    ]);
    if (row!.gone > 0) this.purgedAt(now);
    return row!.gone;
  }

  async deleteTombstones({ now, limit }: { now: number; limit: number }): Promise<number> {
    // Rows of killed servers are deleted here too.
    await this.connections.query(forgetClaimants);
    await this.connections.query(deleteEndedKeys, [now, limit]);
    const by = now - tombstoneMs;
    const from = this.#tombstones.begin();
    const startedAt = this.monotonic();
    const [row] = await this.connections.query<{ gone: number; up_to: number | null }>(
      this.skip(deleteTombstones),
      [by, limit, from],
    );
    if (from === 0) this.#tombstones.tookWhole(this.monotonic() - startedAt);
    const { gone, up_to: upTo } = row!;
    this.#tombstones.raise(gone < limit ? by : (upTo ?? 0));
    return gone;
  }

  /** Deletes the finished tasks of deleted queues, also of those that a killed server deleted. */
  async clearDeletedQueues(): Promise<void> {
    const found = await this.connections.query<{ queue_no: number; deleted_at: number }>(
      deletedQueues,
    );
    for (const queue of found) await this.clearDeletedQueue(queue.queue_no, queue.deleted_at);
  }

  async clearDeletedQueue(queueNo: number, deletedAt: number): Promise<void> {
    this.purgedAt(deletedAt);
    const values = [queueNo, deletedAt, batchSize];
    for (const statement of deleteOfDeletedQueue) {
      while ((await this.#count(statement, values)) === batchSize) continue;
    }
    await this.connections.query(removeDeletedQueue, [queueNo]);
  }

  async #count(statement: SkippingStatement, values: readonly unknown[]): Promise<number> {
    const [row] = await this.connections.query<{ gone: number }>(this.skip(statement), values);
    return row!.gone;
  }
}

const numberOf = (name: string) => `(SELECT no FROM millrace.queues WHERE name = ${name})`;

/** Leaves tombstones for the rows of `gone`. */
const tombstonesLeft = (now: string) => `tombstones AS (
    UPDATE millrace.tasks t SET purged_at = ${now}, purged_status = g.outcome, payload = '',
      headers = '{}' FROM gone g WHERE ${byId('t.id', 'g.id')}
  ), ${keysOfDeleted}, ${flowRowsDeleted}`;

/** Deletes the finished tasks that come first in an order. */
const firstDeleted = (where: string, order: string, limit: string) => `old AS (
    SELECT id FROM millrace.ended WHERE ${where}
    ORDER BY ${order}, id LIMIT ${limit}
    FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM millrace.ended e USING unnest(ARRAY(SELECT id FROM old)) AS o(id)
    WHERE ${byId('e.id', 'o.id')}
    RETURNING e.id, e.queue_no, e.outcome, e.unique_key, e.flow
  )`;

const oldestDeleted = (outcome: 3 | 4, where: string, limit: string) =>
  firstDeleted(`outcome = ${outcome} AND ${where}`, 'ended_at', limit);

/** $1 queue, $2 ids, $3 died by, $4 now. */
export const purgeTasks = statement(
  'purge',
  `WITH gone AS (
    DELETE FROM millrace.ended e
    WHERE e.id = ANY($2::text[]) AND e.queue_no = $1 AND ${isDead('e')} AND e.ended_at <= $3
    RETURNING e.id, e.queue_no, e.outcome, e.unique_key, e.flow
  ), ${tombstonesLeft('$4')}, ${counted('0', '-count(*)')}
  SELECT id FROM gone`,
);

/** $1 queue (null: any), $2 ids that differ, $3 when each is due, $4 died by, $5 now. */
export const redriveTasks = statement(
  'redrive',
  `WITH input AS (
    SELECT * FROM unnest($2::text[], $3::bigint[]) AS i(id, due_at)
  ), back AS (
    DELETE FROM millrace.ended e USING input i
    WHERE ${byId('e.id', 'i.id')} AND ($1::bigint IS NULL OR e.queue_no = $1)
      AND ${isDead('e')} AND e.ended_at <= $4
    RETURNING e.*, i.due_at
  ), waiting AS (
    INSERT INTO millrace.live (id, queue_no, created_at, updated_at, due_at, attempt,
      total_attempts, redrive_count, stage, priority, settled_verdict, started, group_key,
      settled_token, http_status, error_type, last_error, attempts, progress, unique_key,
      unique_until, flow, labels, retain_ms)
    SELECT b.id, b.queue_no, t.created_at, $5, b.due_at, 0, b.total_attempts,
      b.redrive_count + 1, CASE WHEN b.due_at <= $5 THEN 0 ELSE 1 END, t.priority,
      b.settled_verdict, false, coalesce(t.group_key, ''), b.settled_token, b.http_status,
      b.error_type, b.last_error, b.attempts, b.progress, b.unique_key, b.unique_until, b.flow,
      ${optionColumns('t.options')}
    FROM back b ${tasksOf('b')}
    RETURNING id, queue_no, stage, priority, group_key, due_at, created_at, unique_key,
      unique_until, flow
  ), ${lowerMarks('waiting')}, counted AS (
    INSERT INTO millrace.counters (queue_no, pending, in_flight, dead)
    SELECT queue_no, count(*), 0, -count(*) FROM waiting GROUP BY queue_no
  )
  SELECT w.id, t.queue, t.handler_ref, w.unique_key, w.unique_until, w.flow IS NOT NULL AS in_flow
  FROM waiting w ${tasksOf('w')}`,
);

/** A child stays while its parent is open, which may not have read the result yet. */
const isReadByParent = `(flow IS NULL OR (SELECT p.id FROM millrace.live p
      WHERE p.id = ended.flow::json->>'parentId' LIMIT 1) IS NULL)`;

const deleteFinished = (name: string, outcome: 3 | 4, more: string) =>
  skippingStatement(
    name,
    `WITH ${oldestDeleted(outcome, `queue_no = ${numberOf('$1')} AND ended_at < $2 AND retained_until IS NULL AND ${isReadByParent}`, '$4')},
      ${tombstonesLeft('$3')}${more}
    SELECT count(*) AS gone FROM gone`,
  );

/** $1 queue, $2 ended before, $3 now, $4 limit. Succeeded tasks are not counted. */
export const deleteDead = deleteFinished('delete_dead', 4, `, ${counted('0', '-count(*)')}`);
export const deleteSucceeded = deleteFinished('delete_succeeded', 3, '');

/** Finished tasks whose own retention is over. $1 now, $2 limit. */
const deleteRetained = skippingStatement(
  'delete_retained',
  `WITH ${firstDeleted(`retained_until IS NOT NULL AND retained_until <= $1 AND ${isReadByParent}`, 'retained_until', '$2')},
  ${tombstonesLeft('$1')}, ${counted('0', '-count(*) FILTER (WHERE outcome = 4)')}
  SELECT count(*) AS gone FROM gone`,
);

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
