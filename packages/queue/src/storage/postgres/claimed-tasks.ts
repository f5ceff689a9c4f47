import type { Task } from '../../core/task.js';
import { settleRow, type TaskRow } from '../task-row.js';
import type { Settlement } from '../task-store.js';

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
    const task = plainCopy(claimed);
    if (settlement.verdict.kind === 'succeeded' && !settlement.error) {
      // The common case: like settleRow, without a second copy.
      task.status = 'SUCCEEDED';
      task.lease = null;
      task.updatedAt = settlement.now;
      task.completedAt = settlement.now;
      return task;
    }
    settleRow(task as TaskRow, settlement);
    if (task.dueAt !== null) task.dueAt = Math.floor(task.dueAt);
    return plainCopy(task);
  }
}

/** Without payload and history. */
function plainCopy(task: Task): Task {
  return {
    id: task.id,
    queue: task.queue,
    handlerRef: task.handlerRef,
    status: task.status,
    payloadContentType: task.payloadContentType,
    headers: task.headers,
    priority: task.priority,
    groupKey: task.groupKey,
    attempt: task.attempt,
    totalAttempts: task.totalAttempts,
    redriveCount: task.redriveCount,
    createdAt: task.createdAt,
    updatedAt: task.updatedAt,
    dueAt: task.dueAt,
    expiresAt: task.expiresAt,
    lease: task.lease,
    completedAt: task.completedAt,
    deadAt: task.deadAt,
    deadReason: task.deadReason,
    lastError: task.lastError,
    submittedBy: task.submittedBy,
  };
}
