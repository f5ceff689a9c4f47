import type { Task } from '../../core/task.js';
import { settleRow, type TaskRow } from '../task-row.js';
import type { Settlement } from '../task-store.js';

const most = 50_000;

/**
 * Tasks that were claimed through this store and are not settled yet, by token. What a settlement
 * makes of them is known here, so the database need not be asked to tell.
 */
export class ClaimedTasks {
  readonly #tasks = new Map<string, Task>();

  add(task: Task): void {
    if (!task.lease) return;
    this.#tasks.set(task.lease.token, task);
    if (this.#tasks.size <= most) return;
    const [oldest] = this.#tasks.keys();
    this.#tasks.delete(oldest!);
  }

  /** The task as it is after the settlement, which took effect; undefined: not known. */
  settled(settlement: Settlement): Task | undefined {
    const claimed = this.#tasks.get(settlement.token);
    this.#tasks.delete(settlement.token);
    if (claimed?.id !== settlement.id) return undefined;
    const task = plainCopy(claimed);
    if (settlement.verdict.kind === 'succeeded' && !settlement.error) {
      // As most are: what settleRow makes of it, without a second copy.
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

/** Without payload, history and what a settlement notes beside them. */
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
