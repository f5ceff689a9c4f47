import type { ClaimedTask } from '../../core/outcome.js';
import type { Attempt, Task } from '../../core/task.js';

/** The part of the storage port that changes single tasks. All changes are audited. */
export interface TaskChanging {
  /**
   * Makes a PENDING or IN_FLIGHT task DEAD (CANCELLED). A lease is settled with that verdict, so
   * its holder cannot settle it any more. A task that was cancelled before stays as it is.
   */
  cancelTask(change: CancelTaskChange): Promise<TaskChangeResult>;
  /** Cancels the given tasks that are PENDING in this queue. Returns the ids that it changed. */
  cancelPending(change: CancelPendingChange): Promise<string[]>;
  /** Changes a PENDING task. */
  updateTask(change: UpdateTaskChange): Promise<TaskChangeResult>;
  /**
   * Subscribes to cancelled tasks that were in flight, also of other servers. A lost hint only
   * lets a callback run on, whose result is refused. Returns the unsubscribe function.
   */
  onCancelled(listener: (id: string) => void): () => void;
}

interface AuditedTaskChange {
  now: number;
  by: string;
  /** For the audit log. */
  selector: Readonly<Record<string, unknown>>;
}

export interface CancelTaskChange extends AuditedTaskChange {
  id: string;
  /** For the task's last error. */
  message: string;
  /** The attempt that ends, if the task is in flight. */
  attempt: (task: ClaimedTask, now: number) => Attempt;
}

export interface CancelPendingChange extends AuditedTaskChange {
  queue: string;
  ids: readonly string[];
  message: string;
}

export interface UpdateTaskChange extends AuditedTaskChange {
  id: string;
  action: 'run_now' | 'update';
  /** Undefined: as it is. */
  dueAt?: number | undefined;
  priority?: number | undefined;
  payload?: NewPayload | undefined;
}

export interface NewPayload {
  bytes: Uint8Array;
  contentType: string;
}

export type TaskChangeResult =
  | { kind: 'changed'; task: Task }
  /** It was cancelled before. */
  | { kind: 'repeated'; task: Task }
  /** The task is not in a status that allows the change. */
  | { kind: 'refused'; task: Task }
  | { kind: 'not_found' };
