import type { Queue } from '../../../src/core/queue.js';
import type { Starts } from '../../../src/core/pacing.js';
import type { Attempt, WholeTask } from '../../../src/core/task.js';
import { toWholeTask, type TaskRow } from '../../../src/storage/port/store-parts.js';
import type { Turns } from './claim-order.js';

export interface MemoryRow extends TaskRow {
  payload: Uint8Array;
  attempts: readonly Attempt[];
  result: string | null;
}

export interface MemoryQueue extends Queue {
  turns: Turns;
  starts: Starts;
}

export function isDue(row: TaskRow, now: number): boolean {
  if (row.status !== 'PENDING' || row.dueAt! > now) return false;
  return row.expiresAt === null || row.expiresAt > now;
}

export function isDeadIn(
  row: TaskRow,
  { queue, diedBy }: { queue: string; diedBy: number },
): boolean {
  return row.queue === queue && row.status === 'DEAD' && row.deadAt! <= diedBy;
}

export function showWhole(row: MemoryRow): WholeTask {
  return toWholeTask(row, row.payload, row.attempts);
}

export function showQueue({ turns: _turns, starts: _starts, ...queue }: MemoryQueue): Queue {
  return { ...queue };
}
