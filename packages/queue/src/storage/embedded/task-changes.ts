import { isClaimed } from '../../core/attempt-record.js';
import { cancelledError, cancelRow, settleRow, toTask, updateRow } from '../port/task-row.js';
import type {
  CancelPendingChange,
  CancelTaskChange,
  TaskChangeResult,
  UpdateTaskChange,
} from '../port/task-changes.js';
import type { Step } from './step.js';
import { encodeFixedAgain, type StoredTask } from './task-codec.js';

export function cancelTask(step: Step, change: CancelTaskChange): TaskChangeResult {
  const task = step.task(change.id);
  if (!task) return { kind: 'not_found' };
  const { row } = task;
  const isRepeated = row.deadReason === 'CANCELLED';
  if (row.status === 'PENDING') cancelWaiting(step, task, change);
  else if (row.status === 'IN_FLIGHT') cancelRunning(step, task, change);
  else if (!isRepeated) return { kind: 'refused', task: toTask(row) };
  record(step, 'cancel', row.queue, change, isRepeated ? 0 : 1);
  return { kind: isRepeated ? 'repeated' : 'changed', task: toTask(row) };
}

export function cancelPending(step: Step, change: CancelPendingChange): string[] {
  const cancelled: string[] = [];
  for (const id of change.ids) {
    const task = step.task(id);
    if (task?.row.queue !== change.queue || task.row.status !== 'PENDING') continue;
    cancelWaiting(step, task, change);
    cancelled.push(id);
  }
  record(step, 'cancel', change.queue, change, cancelled.length);
  return cancelled;
}

export function updateTask(step: Step, change: UpdateTaskChange): TaskChangeResult {
  const task = step.task(change.id);
  if (!task) return { kind: 'not_found' };
  const { row } = task;
  if (row.status !== 'PENDING') return { kind: 'refused', task: toTask(row) };
  step.leave(task, { isReady: false });
  const { priority } = row;
  updateRow(row, change);
  if (row.priority !== priority) task.fixed = encodeFixedAgain(task);
  step.enter(task, change.now);
  step.store(task);
  record(step, change.action, row.queue, change, 1);
  return { kind: 'changed', task: toTask(row) };
}

function cancelWaiting(
  step: Step,
  task: StoredTask,
  { now, message }: { now: number; message: string },
): void {
  step.leave(task, { isReady: false });
  cancelRow(task.row, message, now);
  step.died(task);
  step.store(task);
}

function cancelRunning(step: Step, task: StoredTask, change: CancelTaskChange): void {
  const { row } = task;
  const { now, message } = change;
  if (!isClaimed(row)) throw new Error(`The task ${row.id} is in flight without a lease`);
  const attempt = change.attempt(row, now);
  const { token } = row.lease;
  step.removeLease(task);
  const verdict = { kind: 'dead', reason: 'CANCELLED' } as const;
  const error = cancelledError(message, now);
  settleRow(row, { id: row.id, token, now, verdict, attempt, error });
  step.addAttempt(task, attempt);
  step.died(task);
  step.store(task);
}

function record(
  step: Step,
  action: 'cancel' | 'run_now' | 'update',
  queue: string,
  { now, by, selector }: Pick<CancelTaskChange, 'now' | 'by' | 'selector'>,
  count: number,
): void {
  step.record({ at: now, principal: by, action, queue, selector, count });
}
