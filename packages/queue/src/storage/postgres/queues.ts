import type { AuditAct } from '../../core/audit.js';
import type { Queue, QueueConfig } from '../../core/queue.js';
import { configInUse } from '../port/store-parts.js';
import { type QueuePut, type QueuePutResult, rowTables } from '../port/task-store.js';
import type { Connections, Transaction } from './connections.js';
import { groupedMark, noTurn } from './low-water-marks.js';
import { addDeletedQueue } from './retention.js';
import { recordAct } from './audit.js';
import { statement } from './statement.js';

export interface QueueColumns {
  no: number;
  name: string;
  config: string;
  paused: boolean;
  version: number;
  incarnation: string;
  created_at: number;
  changed_at: number;
}

export interface QueueAct {
  queue: string;
  now: number;
  by: string;
}

export function toQueue(row: QueueColumns): Queue {
  return {
    name: row.name,
    config: configInUse(JSON.parse(row.config) as QueueConfig),
    paused: row.paused,
    version: row.version,
    incarnation: row.incarnation,
    createdAt: row.created_at,
    updatedAt: row.changed_at,
  };
}

/** A result for each name, in order. */
export async function readQueues(
  connections: Connections,
  names: readonly string[],
): Promise<(Queue | undefined)[]> {
  const rows = await connections.query<QueueColumns>(getQueues, [[...new Set(names)]]);
  const found = new Map(rows.map((row) => [row.name, row]));
  return names.map((name) => {
    const row = found.get(name);
    return row && toQueue(row);
  });
}

export function putQueue(
  connections: Connections,
  put: QueuePut,
  incarnation: string,
): Promise<QueuePutResult> {
  const { queue: name, ifVersion, now } = put;
  const config = JSON.stringify(put.config);
  return connections.transact(async (transaction) => {
    let [before] = await transaction.query<QueueColumns>(lockQueue, [name]);
    let created: QueueColumns | undefined;
    if (!before && !ifVersion) {
      const values = [name, config, false, 1, incarnation, now, now, '{}', '[]'];
      [created] = await transaction.query<QueueColumns>(createQueue, values);
      // Another server created it a moment ago.
      if (!created) [before] = await transaction.query<QueueColumns>(lockQueue, [name]);
    }
    if (!created && ifVersion !== undefined && ifVersion !== (before?.version ?? 0)) {
      return { kind: 'version_mismatch', queue: before && toQueue(before) };
    }
    const [written] = created
      ? [created]
      : await transaction.query<QueueColumns>(configureQueue, [before!.no, config, now]);
    await record(transaction, 'config_write', put);
    return { kind: 'written', queue: toQueue(written!), created: created !== undefined };
  });
}

export function setPaused(
  connections: Connections,
  act: QueueAct & { paused: boolean },
): Promise<boolean> {
  const { queue, paused } = act;
  return connections.transact(async (transaction) => {
    const rows = await transaction.query(pauseQueue, [queue, paused]);
    if (rows.length === 0) return false;
    await record(transaction, paused ? 'pause' : 'resume', act);
    return true;
  });
}

/** Returns the number of the deleted queue, whose finished tasks are still to be deleted. */
export function deleteQueue(
  connections: Connections,
  act: QueueAct,
): Promise<number | 'not_empty' | 'not_found'> {
  const { queue, now } = act;
  return connections.transact(async (transaction) => {
    const [row] = await transaction.query<QueueColumns>(lockQueue, [queue]);
    if (!row) return 'not_found';
    const [state] = await transaction.query<{ empty: boolean }>(queueIsEmpty, [row.no]);
    if (!state!.empty) return 'not_empty';
    await transaction.query(deleteQueueRows, [row.no]);
    await transaction.query(addDeletedQueue, [row.no, now]);
    await record(transaction, 'delete', act);
    return row.no;
  });
}

function record(
  transaction: Transaction,
  action: AuditAct['action'],
  { queue, now, by }: QueueAct,
): Promise<void> {
  const act = { at: now, principal: by, action, queue, selector: null, count: null };
  return recordAct(transaction, act);
}

const columns = 'no, name, config, paused, version, incarnation, created_at, changed_at';

export const listQueues = statement(
  'list_queues',
  `SELECT ${columns} FROM millrace.queues ORDER BY name`,
);

export const getQueues = statement(
  'get_queues',
  `SELECT ${columns} FROM millrace.queues WHERE name = ANY($1::text[])`,
);

export const lockQueue = statement(
  'lock_queue',
  `SELECT ${columns} FROM millrace.queues WHERE name = $1 FOR UPDATE`,
);

/** With its claim lock, and its low-water marks with the last groups in $8. No row: another server created it first. */
export const createQueue = statement(
  'create_queue',
  `WITH queue AS (
    INSERT INTO millrace.queues (name, config, paused, version, incarnation, created_at, changed_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (name) DO NOTHING
    RETURNING ${columns}
  ), claim_lock AS (
    INSERT INTO millrace.queue_locks (queue_no, starts, fifo_position) SELECT no, $9, '' FROM queue
  ), marks AS (
    INSERT INTO millrace.low_water_marks (queue_no, priority, due_at, last_group)
    SELECT no, kind, 0, coalesce($8::jsonb->>(kind::text), '${noTurn}')
    FROM queue CROSS JOIN generate_series(${groupedMark}, 9) AS kind
  )
  SELECT * FROM queue`,
);

export const configureQueue = statement(
  'configure_queue',
  `UPDATE millrace.queues SET config = $2, version = version + 1, changed_at = $3
  WHERE no = $1 RETURNING ${columns}`,
);

export const pauseQueue = statement(
  'pause_queue',
  'UPDATE millrace.queues SET paused = $2 WHERE name = $1 RETURNING no',
);

export const queueIsEmpty = statement(
  'queue_is_empty',
  `SELECT coalesce(sum(pending), 0) = 0 AND coalesce(sum(in_flight), 0) = 0
    AND coalesce(sum(dead), 0) = 0 AS empty
  FROM millrace.counters WHERE queue_no = $1`,
);

export const deleteQueueRows = statement(
  'delete_queue',
  `WITH claim_lock AS (DELETE FROM millrace.queue_locks WHERE queue_no = $1),
    counters AS (DELETE FROM millrace.counters WHERE queue_no = $1),
    marks AS (DELETE FROM millrace.low_water_marks WHERE queue_no = $1),
    rows AS (DELETE FROM millrace.rows
      WHERE kind IN (${rowTables.map((table) => `'${table}'`).join(', ')}) AND queue_no = $1),
    keys AS (DELETE FROM millrace.unique_keys WHERE queue_no = $1),
    claimants AS (DELETE FROM millrace.claimants WHERE queue_no = $1)
  DELETE FROM millrace.queues WHERE no = $1`,
);

/** Keeps the queue from being deleted before the commit. */
export const keepQueue = statement(
  'keep_queue',
  'SELECT no FROM millrace.queues WHERE name = $1 FOR KEY SHARE',
);
