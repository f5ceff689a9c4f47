import { isClaimed } from '../../core/outcome.js';
import type { Task } from '../../core/task.js';
import { cancelledError, mayUpdate } from '../port/store-parts.js';
import type {
  CancelPendingChange,
  CancelTaskChange,
  TaskChangeResult,
  UpdateTaskChange,
} from '../port/task-changes.js';
import { recordAct } from './audit.js';
import type { Connections, Transaction } from './connections.js';
import { lockForClaims } from './counters.js';
import { lowerMarks } from './low-water-marks.js';
import { keepQueue } from './queues.js';
import { settleIds } from './settlements.js';
import { byId, statement } from './statement.js';
import { findTasks, type FoundColumns, toTask, wholeMs, withoutZeros } from './tasks.js';
import { pendingEnded } from './upkeep.js';

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
    return (await transaction.query(cancelPendingTasks, values)).length > 0;
  }
  if (!isClaimed(task)) return false;
  const { id, lease } = task;
  const verdict = { kind: 'dead', reason: 'CANCELLED' } as const;
  const attempt = change.attempt(task, now);
  const settlement = { id, token: lease.token, now, verdict, attempt, error };
  return (await settleIds(transaction, [settlement])).isSettled(id);
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
    const rows = await transaction.query<{ id: string }>(cancelPendingTasks, values);
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
    if (!mayUpdate(task, change)) return { kind: 'refused', task };
    const { id, dueAt, priority = null, payload, now } = change;
    const due = dueAt === undefined ? null : wholeMs(dueAt);
    const { bytes = null, contentType = null } = payload ?? {};
    const values = [id, due, priority, now, bytes, contentType];
    const [changed] = await transaction.query(updatePending, values);
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

/** Makes pending tasks dead. $1 queue, $2 ids, $3 now, $4 error. */
export const cancelPendingTasks = statement(
  'cancel_pending',
  `WITH gone AS (
    DELETE FROM millrace.live l USING unnest($2::text[]) AS p(id)
    WHERE ${byId('l.id', 'p.id')} AND l.queue_no = (SELECT no FROM millrace.queues WHERE name = $1)
      AND l.lease_token IS NULL
    RETURNING l.*
  ), ${pendingEnded('CANCELLED', { now: '$3', error: '$4' })}
  SELECT id FROM over`,
);

/**
 * $1 id, $2 due time, $3 priority, $4 now, $5 payload, $6 its content type (null: as it is). No row:
 * it is not pending.
 */
export const updatePending = statement(
  'update_pending',
  `WITH changed AS (
    UPDATE millrace.live l SET due_at = coalesce($2::bigint, l.due_at),
      priority = coalesce($3::smallint, l.priority), updated_at = $4,
      stage = CASE WHEN coalesce($2::bigint, l.due_at) <= $4 THEN 0 ELSE 1 END
    WHERE l.id = $1 AND l.lease_token IS NULL
    RETURNING l.id, l.queue_no, l.stage, l.priority, l.group_key, l.due_at, l.created_at
  ), ${lowerMarks('changed')}, kept AS (
    UPDATE millrace.tasks t SET priority = c.priority, payload = coalesce($5::bytea, t.payload),
      content_type = coalesce($6::text, t.content_type) FROM changed c
    WHERE ${byId('t.id', 'c.id')} AND (t.priority <> c.priority OR $5::bytea IS NOT NULL)
  )
  SELECT id FROM changed`,
);

export const groupIsBusy = statement(
  'group_is_busy',
  `SELECT EXISTS (
    SELECT 1 FROM millrace.live l JOIN millrace.queues q ON q.no = l.queue_no
    WHERE q.name = $1 AND l.stage = 2 AND l.group_key <> '' AND l.group_key = $2 AND l.id <> $3
  ) OR EXISTS (
    SELECT 1 FROM millrace.live l JOIN millrace.queues q ON q.no = l.queue_no
    WHERE q.name = $1 AND l.stage < 2 AND l.started AND l.group_key <> ''
      AND l.group_key = $2 AND l.id <> $3
  ) AS busy`,
);

export const groupIsFull = statement(
  'group_is_full',
  `SELECT count(*) >= $3 AS busy FROM millrace.live l JOIN millrace.queues q ON q.no = l.queue_no
  WHERE q.name = $1 AND l.stage = 2 AND l.group_key <> '' AND l.group_key = $2`,
);
