import type { Task } from '../../../core/task.js';
import { settleRow, toTask, type TaskRow } from '../../port/task-row.js';
import type { Settlement } from '../../port/task-store.js';
import { wholeMs } from './task-columns.js';

const maxTasks = 50_000;

/**
 * Tasks claimed by this server and not settled yet, by lease token. The result of a settlement is
 * computed from them, so the database need not return it.
 */
export class ClaimedTasks {
  readonly #tasks = new Map<string, Task>();

  add(task: Task): void {
    if (!task.lease) return;
    this.#tasks.set(task.lease.token, task);
    if (this.#tasks.size <= maxTasks) return;
    const [oldest] = this.#tasks.keys();
    this.#tasks.delete(oldest!);
  }

  /** The task after its settlement; undefined if it was not claimed here. */
  settled(settlement: Settlement): Task | undefined {
    const claimed = this.#tasks.get(settlement.token);
    this.#tasks.delete(settlement.token);
    if (claimed?.id !== settlement.id) return undefined;
    const row = toTask(claimed as TaskRow) as TaskRow;
    settleRow(row, settlement);
    if (row.dueAt !== null) row.dueAt = wholeMs(row.dueAt);
    return toTask(row);
  }
}
