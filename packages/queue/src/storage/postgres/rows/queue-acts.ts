import type { AuditAct } from '../../../core/audit.js';
import type { Queue, QueueConfig } from '../../../core/queue.js';
import type { QueuePut, QueuePutResult } from '../../port/task-store.js';
import { recordAct } from './audit.js';
import type { Connections, Transaction } from '../connection/connections.js';
import { addDeletedQueue } from '../statements/retention.sql.js';
import * as statements from '../statements/queues.sql.js';

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
    config: JSON.parse(row.config) as QueueConfig,
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
  const rows = await connections.query<QueueColumns>(statements.getQueues, [[...new Set(names)]]);
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
    let [before] = await transaction.query<QueueColumns>(statements.lockQueue, [name]);
    let created: QueueColumns | undefined;
    if (!before && !ifVersion) {
      const values = [name, config, false, 1, incarnation, now, now, '{}', '[]'];
      [created] = await transaction.query<QueueColumns>(statements.createQueue, values);
      // Another server created it a moment ago.
      if (!created) [before] = await transaction.query<QueueColumns>(statements.lockQueue, [name]);
    }
    if (!created && ifVersion !== undefined && ifVersion !== (before?.version ?? 0)) {
      return { kind: 'version_mismatch', queue: before && toQueue(before) };
    }
    const [written] = created
      ? [created]
      : await transaction.query<QueueColumns>(statements.configureQueue, [before!.no, config, now]);
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
    const rows = await transaction.query(statements.pauseQueue, [queue, paused]);
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
    const [row] = await transaction.query<QueueColumns>(statements.lockQueue, [queue]);
    if (!row) return 'not_found';
    const [state] = await transaction.query<{ empty: boolean }>(statements.queueIsEmpty, [row.no]);
    if (!state!.empty) return 'not_empty';
    await transaction.query(statements.deleteQueue, [row.no]);
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
