import type { Task } from '../../core/task.js';
import { extendedExpiry, mayEnd, settleRow, toTask } from '../port/task-row.js';
import type { Settlement, SettleResult, TaskStore } from '../port/task-store.js';
import { idKey, kinds } from './keys.js';
import type { Step } from './step.js';

export function settle(step: Step, settlement: Settlement): SettleResult {
  const task = step.task(settlement.id);
  if (!task) return { kind: 'lease_lost', task: undefined };
  const { row } = task;
  if (row.lease?.token !== settlement.token) {
    const { settled } = row;
    if (settled?.token !== settlement.token) return { kind: 'lease_lost', task: toTask(row) };
    return { kind: 'repeated', task: toTask(row), verdict: settled.verdict };
  }
  if (!mayEnd(row.lease, settlement)) return { kind: 'lease_lost', task: toTask(row) };
  step.removeLease(task);
  settleRow(row, settlement);
  step.addAttempt(task, settlement.attempt);
  if (settlement.result !== undefined && row.status === 'SUCCEEDED') {
    step.rows.put(idKey(kinds.result, row.id), Buffer.from(settlement.result));
    task.hasResult = true;
  }
  if (row.status === 'PENDING') step.enter(task, settlement.now);
  else if (row.status === 'SUCCEEDED') step.succeeded(task);
  else step.died(task);
  step.store(task);
  return { kind: 'settled', task: toTask(row) };
}

export function extendLease(
  step: Step,
  change: Parameters<TaskStore['extendLease']>[0],
): Task | 'lease_lost' | 'not_found' {
  const task = step.task(change.id);
  if (!task) return 'not_found';
  const { row } = task;
  const { lease } = row;
  if (lease?.token !== change.token) return 'lease_lost';
  step.moveLease(task, extendedExpiry(lease, change));
  lease.isAsync = change.isAsync;
  row.updatedAt = change.now;
  row.progress = change.progress ?? row.progress;
  step.store(task);
  return toTask(row);
}
