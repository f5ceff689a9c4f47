import type { RowReader } from '@millrace/db';
import type { Attempt, WholeTask } from '../../core/task.js';
import { toWholeTask } from '../task-row.js';
import { attemptsApart, decodeAttempt } from './attempt-codec.js';
import { attemptKey, idKey, kinds } from './keys.js';
import type { StoredTask } from './task-codec.js';

/** The task with its payload and history. */
export function showWhole(rows: RowReader, task: StoredTask): WholeTask {
  return toWholeTask(task.row, payloadOf(rows, task), historyOf(rows, task));
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
