import { isClaimed } from '../../../src/core/outcome.js';
import type { Attempt } from '../../../src/core/task.js';
import type {
  CancelTaskChange,
  TaskChangeResult,
  UpdateTaskChange,
} from '../../../src/storage/port/task-changes.js';
import {
  cancelledError,
  cancelRow,
  mayUpdate,
  settleRow,
  toTask,
  updateRow,
  withAttempt,
  type TaskRow,
} from '../../../src/storage/port/store-parts.js';

type Row = TaskRow & { attempts: readonly Attempt[]; payload: Uint8Array };

export function cancelTask(row: Row, change: CancelTaskChange): TaskChangeResult {
  const { now, message } = change;
  if (row.deadReason === 'CANCELLED') return { kind: 'repeated', task: toTask(row) };
  if (row.status === 'PENDING') cancelRow(row, message, now);
  else if (isClaimed(row)) {
    const attempt = change.attempt(row, now);
    const { token } = row.lease;
    const verdict = { kind: 'dead', reason: 'CANCELLED' } as const;
    const error = cancelledError(message, now);
    settleRow(row, { id: row.id, token, now, verdict, attempt, error });
    row.attempts = withAttempt(row.attempts, attempt);
  } else return { kind: 'refused', task: toTask(row) };
  return { kind: 'changed', task: toTask(row) };
}

export function updateTask(row: Row, change: UpdateTaskChange): TaskChangeResult {
  if (!mayUpdate(row, change)) return { kind: 'refused', task: toTask(row) };
  updateRow(row, change);
  row.payload = change.payload?.bytes ?? row.payload;
  return { kind: 'changed', task: toTask(row) };
}
