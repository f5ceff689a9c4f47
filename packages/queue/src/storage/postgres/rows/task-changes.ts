import { isClaimed } from '../../../core/attempt-record.js';
import type { Task } from '../../../core/task.js';
import type {
  CancelPendingChange,
  CancelTaskChange,
  TaskChangeResult,
  UpdateTaskChange,
} from '../../port/task-changes.js';
import { cancelledError } from '../../port/task-row.js';
import { recordAct } from './audit.js';
import type { Connections, Transaction } from '../connection/connections.js';
import { settleIds } from './settlements.js';
import { findTasks } from '../statements/find-tasks.sql.js';
import { keepQueue } from '../statements/queues.sql.js';
import { lockForClaims } from '../statements/room.sql.js';
import * as statements from '../statements/task-changes.sql.js';
import { toTask, wholeMs, withoutZeros, type FoundColumns } from './task-columns.js';

/**
 * Changes of single tasks. They hold the claim lock of the queue, so that no claim takes the task
 * at the same time, and no deadlock is possible with one.
 */
export function cancelTask(
  connections: Connections,
  change: CancelTaskChange,
): Promise<TaskChangeResult> {
  return withTask(connections, change.id, async (transaction, task) => {
    const isRepeated = task.deadReason === 'CANCELLED';
    if (!isRepeated && !(await cancelLive(transaction, task, change))) {
      return { kind: 'refused', task };
    }
    const after = isRepeated ? task : await find(transaction, change.id);
    await record(transaction, 'cancel', task.queue, change, isRepeated ? 0 : 1);
    return { kind: isRepeated ? 'repeated' : 'changed', task: after! };
  });
}

/** False: the task has ended. */
async function cancelLive(
  transaction: Transaction,
  task: Task,
  change: CancelTaskChange,
): Promise<boolean> {
  const { now } = change;
  const message = withoutZeros(change.message);
  const error = cancelledError(message, now);
  if (task.status === 'PENDING') {
    const values = [task.queue, [task.id], now, JSON.stringify(error)];
    return (await transaction.query(statements.cancelPending, values)).length > 0;
  }
  if (!isClaimed(task)) return false;
  const { id, lease } = task;
  const verdict = { kind: 'dead', reason: 'CANCELLED' } as const;
  const attempt = change.attempt(task, now);
  const settlement = { id, token: lease.token, now, verdict, attempt, error };
  return (await settleIds(transaction, [settlement]))(id);
}

/** Returns the ids that it changed, in the order given. */
export function cancelPending(
  connections: Connections,
  change: CancelPendingChange,
): Promise<string[]> {
  const { queue, now } = change;
  const ids = [...new Set(change.ids)];
  return connections.transact(async (transaction) => {
    const [found] = await transaction.query(keepQueue, [queue]);
    if (!found) return [];
    await transaction.query(lockForClaims, [[queue]]);
    const error = JSON.stringify(cancelledError(withoutZeros(change.message), now));
    const values = [queue, ids, now, error];
    const rows = await transaction.query<{ id: string }>(statements.cancelPending, values);
    await record(transaction, 'cancel', queue, change, rows.length);
    const cancelled = new Set(rows.map(({ id }) => id));
    return ids.filter((id) => cancelled.has(id));
  });
}

export function updateTask(
  connections: Connections,
  change: UpdateTaskChange,
): Promise<TaskChangeResult> {
  return withTask(connections, change.id, async (transaction, task) => {
    const { id, dueAt, priority = null, now } = change;
    const values = [id, dueAt === undefined ? null : wholeMs(dueAt), priority, now];
    const [changed] = await transaction.query(statements.updatePending, values);
    if (!changed) return { kind: 'refused', task };
    const after = await find(transaction, id);
    await record(transaction, change.action, task.queue, change, 1);
    return { kind: 'changed', task: after! };
  });
}

/** Runs a change of a task while no claim of its queue runs. */
function withTask(
  connections: Connections,
  id: string,
  change: (transaction: Transaction, task: Task) => Promise<TaskChangeResult>,
): Promise<TaskChangeResult> {
  return connections.transact(async (transaction) => {
    const known = await find(transaction, id);
    if (!known) return { kind: 'not_found' };
    await transaction.query(lockForClaims, [[known.queue]]);
    // As it is now that no claim can change it; a settlement still can.
    const task = await find(transaction, id);
    return task ? change(transaction, task) : { kind: 'not_found' };
  });
}

async function find(transaction: Transaction, id: string): Promise<Task | undefined> {
  const [row] = await transaction.query<FoundColumns>(findTasks, [[id]]);
  return row && row.status !== null ? toTask(row) : undefined;
}

function record(
  transaction: Transaction,
  action: 'cancel' | 'run_now' | 'update',
  queue: string,
  { now, by, selector }: Pick<CancelTaskChange, 'now' | 'by' | 'selector'>,
  count: number,
): Promise<void> {
  return recordAct(transaction, { at: now, principal: by, action, queue, selector, count });
}
