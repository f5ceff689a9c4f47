import type { RowReader } from '@millrace/engine';
import type { Attempt, FullTask, WholeTask } from '../../core/task.js';
import { toFullTask, toWholeTask } from '../port/task-row.js';
import { attemptsApart, decodeAttempt } from './attempt-codec.js';
import { attemptKey, idKey, kinds } from './keys.js';
import type { StoredTask } from './task-codec.js';

/** The task with its payload and history. */
export function showWhole(rows: RowReader, task: StoredTask): WholeTask {
  return toWholeTask(task.row, payloadOf(rows, task), historyOf(rows, task));
}

/** The same with its result and everything else that is stored. */
export function showFull(rows: RowReader, task: StoredTask): FullTask {
  const result = task.hasResult ? rows.get(idKey(kinds.result, task.row.id)) : undefined;
  return toFullTask(task.row, showWhole(rows, task), result?.toString() ?? null);
}

function payloadOf(rows: RowReader, task: StoredTask): Uint8Array {
  if (task.payload) return task.payload;
  const payload = rows.get(idKey(kinds.payload, task.row.id));
  if (!payload) throw new Error(`The payload of the task ${task.row.id} is not there`);
  return payload;
}

function historyOf(rows: RowReader, task: StoredTask): Attempt[] {
  const history: Attempt[] = [];
  for (const number of attemptsApart(task)) {
    const bytes = rows.get(attemptKey(task.row.id, number));
    if (!bytes) throw new Error(`Attempt ${number} of the task ${task.row.id} is not there`);
    history.push(decodeAttempt(bytes));
  }
  if (task.lastAttempt) history.push(task.lastAttempt);
  return history;
}
