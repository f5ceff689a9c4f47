import type { FullTask, Attempt, Task, Tombstone, WholeTask } from '../../core/task.js';
import type { RecordKind, RecordQuery, RecordState, StoredRecord } from '../stored-record.js';
import type {
  CancelPendingChange,
  CancelTaskChange,
  TaskChangeResult,
  UpdateTaskChange,
} from '../task-changes.js';
import type { TaskListQuery, TaskPage } from '../task-list.js';
import type {
  ClaimRequest,
  InsertResult,
  JobStep,
  JobStepResult,
  NewTask,
  PurgeChange,
  QueuePut,
  QueuePutResult,
  RecordWrite,
  RecordWriteResult,
  RedriveChange,
  Settlement,
  SettleResult,
  TaskStore,
  Verdict,
  WorkerNote,
  WorkerStats,
} from '../task-store.js';
import { PostgresStore } from './postgres-store.js';

/**
 * Converts between the clock of this machine and that of the database: `now` and due times on the way
 * in, leases on the way out. Other times are returned as stored. It changes nothing if the clocks
 * agree. Methods without times are inherited.
 */
export class DatabaseTimeStore extends PostgresStore {
  override putQueue(put: QueuePut): Promise<QueuePutResult> {
    return super.putQueue(this.#atNow(put));
  }

  override setPaused(change: Parameters<TaskStore['setPaused']>[0]): Promise<boolean> {
    return super.setPaused(this.#atNow(change));
  }

  override deleteQueue(
    change: Parameters<TaskStore['deleteQueue']>[0],
  ): ReturnType<TaskStore['deleteQueue']> {
    return super.deleteQueue(this.#atNow(change));
  }

  override insertTasks(tasks: readonly NewTask[], now: number): Promise<InsertResult[]> {
    const { ms } = this.parts.shift;
    if (ms === 0) return super.insertTasks(tasks, now);
    const shifted = tasks.map((task) => ({
      ...task,
      dueAt: task.dueAt + ms,
      uniqueUntil: task.uniqueUntil ? task.uniqueUntil + ms : null,
    }));
    return super.insertTasks(shifted, now + ms);
  }

  override async getTask(id: string): Promise<FullTask | Tombstone | undefined> {
    const found = await super.getTask(id);
    return found && 'lease' in found ? this.#own(found) : found;
  }

  override async listTasks(query: TaskListQuery): Promise<TaskPage> {
    const { tasks, next } = await super.listTasks(query);
    return { tasks: tasks.map((task) => this.#own(task)), next };
  }

  override cancelTask(change: CancelTaskChange): Promise<TaskChangeResult> {
    return super.cancelTask(this.#atNow(change));
  }

  override cancelPending(change: CancelPendingChange): Promise<string[]> {
    return super.cancelPending(this.#atNow(change));
  }

  override updateTask(change: UpdateTaskChange): Promise<TaskChangeResult> {
    const dueAt = change.dueAt === undefined ? undefined : change.dueAt + this.parts.shift.ms;
    return super.updateTask({ ...this.#atNow(change), dueAt });
  }

  override async claimDue(request: ClaimRequest): Promise<WholeTask[]> {
    const { ms } = this.parts.shift;
    if (ms === 0) return super.claimDue(request);
    const leaseExpiresAt = request.leaseExpiresAt + ms;
    const tasks = await super.claimDue({ ...this.#atNow(request), leaseExpiresAt });
    return tasks.map((task) => this.#own(task));
  }

  override async settle(settlements: readonly Settlement[]): Promise<SettleResult[]> {
    const { ms } = this.parts.shift;
    if (ms === 0) return super.settle(settlements);
    const results = await super.settle(settlements.map((each) => shiftSettlement(each, ms)));
    return results.map((result) =>
      result.task ? { ...result, task: this.#own(result.task) } : result,
    );
  }

  override async extendLease(
    change: Parameters<TaskStore['extendLease']>[0],
  ): Promise<Task | 'lease_lost' | 'not_found'> {
    const { ms } = this.parts.shift;
    const expiresAt = change.expiresAt + ms;
    const progress = change.progress && { ...change.progress, at: change.progress.at + ms };
    const replaces = change.replaces === undefined ? undefined : change.replaces + ms;
    const shifted = { ...this.#atNow(change), expiresAt, replaces, progress };
    const moved = await super.extendLease(shifted);
    return typeof moved === 'string' ? moved : this.#own(moved);
  }

  override async endedLeases(request: { now: number; limit: number }): Promise<WholeTask[]> {
    const tasks = await super.endedLeases(this.#atNow(request));
    return tasks.map((task) => this.#own(task));
  }

  override expireTasks(request: { now: number; limit: number }): Promise<Task[]> {
    return super.expireTasks(this.#atNow(request));
  }

  override async nextEventAt(): ReturnType<TaskStore['nextEventAt']> {
    const { ms } = this.parts.shift;
    const { dueByQueue, upkeepAt } = await super.nextEventAt();
    if (ms === 0) return { dueByQueue, upkeepAt };
    const own = [...dueByQueue].map(([queue, at]) => [queue, at - ms] as const);
    return {
      dueByQueue: new Map(own),
      upkeepAt: upkeepAt === undefined ? undefined : upkeepAt - ms,
    };
  }

  override noteWorkers(notes: readonly WorkerNote[], now: number): Promise<void> {
    const { ms } = this.parts.shift;
    const shifted = notes.map((note) => ({ ...note, seenAt: note.seenAt + ms }));
    return super.noteWorkers(shifted, now + ms);
  }

  override async listWorkers(request: {
    queue: string;
    seenSince: number;
  }): Promise<WorkerStats[]> {
    const { ms } = this.parts.shift;
    const seenSince = request.seenSince + ms;
    const workers = await super.listWorkers({ ...request, seenSince });
    return workers.map((worker) => ({ ...worker, lastSeenAt: worker.lastSeenAt - ms }));
  }

  override redrive(change: RedriveChange): Promise<string[]> {
    const { ms } = this.parts.shift;
    const dueAt = (index: number) => change.dueAt(index) + ms;
    return super.redrive({ ...this.#atNow(change), diedBy: change.diedBy + ms, dueAt });
  }

  override purge(change: PurgeChange): Promise<string[]> {
    return super.purge({ ...this.#atNow(change), diedBy: change.diedBy + this.parts.shift.ms });
  }

  override deleteFinished(request: Parameters<TaskStore['deleteFinished']>[0]): Promise<number> {
    const endedBefore = request.endedBefore + this.parts.shift.ms;
    return super.deleteFinished({ ...this.#atNow(request), endedBefore });
  }

  override deleteTombstones(request: { now: number; limit: number }): Promise<number> {
    return super.deleteTombstones(this.#atNow(request));
  }

  override async listRecords(query: RecordQuery): Promise<StoredRecord[]> {
    const found = await super.listRecords(query);
    return found.map((record) => this.#ownRecord(record));
  }

  override async listRecordStates(kind: RecordKind, queue?: string): Promise<RecordState[]> {
    const found = await super.listRecordStates(kind, queue);
    return found.map((record) => this.#ownRecord(record));
  }

  override async writeRecord(write: RecordWrite): Promise<RecordWriteResult> {
    const { ms } = this.parts.shift;
    const tasks = write.tasks?.map((task) => ({ ...task, dueAt: task.dueAt + ms }));
    const result = await super.writeRecord({ ...this.#atNow(write), tasks });
    if (result.kind !== 'written') return result;
    return { ...result, record: this.#ownRecord(result.record) };
  }

  override async runJobStep(step: JobStep): Promise<JobStepResult> {
    const { ms } = this.parts.shift;
    const change = { ...this.#atNow(step.change), diedBy: step.change.diedBy + ms };
    if (change.action === 'redrive') {
      const { dueAt } = change;
      change.dueAt = (index) => dueAt(index) + ms;
    }
    const result = await super.runJobStep({ ...step, change });
    return result.kind === 'done' ? { ...result, record: this.#ownRecord(result.record) } : result;
  }

  #atNow<Request extends { now: number }>(request: Request): Request {
    const { ms } = this.parts.shift;
    return ms === 0 ? request : { ...request, now: request.now + ms };
  }

  /** The creation time in the time of this machine: a job compares it with the deaths of tasks. */
  #ownRecord<Shown extends RecordState>(record: Shown): Shown {
    const { ms } = this.parts.shift;
    return ms === 0 ? record : { ...record, createdAt: record.createdAt - ms };
  }

  /** With its lease in the time of this machine. */
  #own<Shown extends Task>(task: Shown): Shown {
    const { ms } = this.parts.shift;
    if (ms === 0 || !task.lease) return task;
    const { expiresAt, startedAt } = task.lease;
    const lease = { ...task.lease, expiresAt: expiresAt - ms, startedAt: startedAt - ms };
    return { ...task, lease };
  }
}

function shiftSettlement(settlement: Settlement, ms: number): Settlement {
  const { now, error, expiredBy } = settlement;
  return {
    ...settlement,
    now: now + ms,
    expiredBy: expiredBy === undefined ? undefined : expiredBy + ms,
    verdict: shiftVerdict(settlement.verdict, ms),
    attempt: shiftAttempt(settlement.attempt, ms),
    error: error && { ...error, at: error.at + ms },
  };
}

function shiftVerdict(verdict: Verdict, ms: number): Verdict {
  return 'dueAt' in verdict ? { ...verdict, dueAt: verdict.dueAt + ms } : verdict;
}

function shiftAttempt(attempt: Attempt, ms: number): Attempt {
  const { startedAt, endedAt, nextAttemptAt } = attempt;
  return {
    ...attempt,
    startedAt: startedAt + ms,
    endedAt: endedAt + ms,
    nextAttemptAt: nextAttemptAt === null ? null : nextAttemptAt + ms,
  };
}
