import type { AuditRecord } from '../../core/audit.js';
import type { HistoryRow, HistoryTotals } from '../../core/history.js';
import type { Queue, QueueCounts } from '../../core/queue.js';
import type { Attempt, FullTask, Task, Tombstone, WholeTask } from '../../core/task.js';
import type {
  AuditQuery,
  ClaimRequest,
  HistoryQuery,
  HistoryWrite,
  DeadTaskQuery,
  DeadGroup,
  DeadPage,
  InsertResult,
  NewTask,
  PurgeChange,
  QueuePut,
  QueuePutResult,
  RedriveChange,
  Settlement,
  SettleResult,
  TaskStore,
  Verdict,
  JobStep,
  JobStepResult,
  RecordWrite,
  RecordWriteResult,
  WorkerNote,
  WorkerStats,
} from '../task-store.js';
import type {
  RecordKey,
  RecordKind,
  RecordQuery,
  RecordState,
  StoredRecord,
} from '../stored-record.js';
import type {
  CancelPendingChange,
  CancelTaskChange,
  TaskChangeResult,
  UpdateTaskChange,
} from '../task-changes.js';
import type { TaskCount, TaskFilter, TaskListQuery, TaskPage } from '../task-list.js';
import type { ClockShift } from './clock-shift.js';
import type { PostgresStore } from './postgres-store.js';
import type { Source, Target } from '../transfer/moved.js';

/**
 * Converts between the clock of this machine and that of the database: `now` and due times on the way
 * in, leases on the way out. Other times are returned as stored. It changes nothing if the clocks
 * agree.
 */
export class DatabaseTimeStore implements TaskStore {
  constructor(
    private readonly store: PostgresStore,
    private readonly shift: ClockShift,
  ) {}

  get capabilities(): PostgresStore['capabilities'] {
    return this.store.capabilities;
  }

  listQueues(): Promise<Queue[]> {
    return this.store.listQueues();
  }

  getQueue(name: string): Promise<Queue | undefined> {
    return this.store.getQueue(name);
  }

  putQueue(put: QueuePut): Promise<QueuePutResult> {
    return this.store.putQueue(this.#atNow(put));
  }

  setPaused(change: Parameters<TaskStore['setPaused']>[0]): Promise<boolean> {
    return this.store.setPaused(this.#atNow(change));
  }

  deleteQueue(
    change: Parameters<TaskStore['deleteQueue']>[0],
  ): ReturnType<TaskStore['deleteQueue']> {
    return this.store.deleteQueue(this.#atNow(change));
  }

  counts(queue: string): Promise<QueueCounts> {
    return this.store.counts(queue);
  }

  insertTasks(tasks: readonly NewTask[], now: number): Promise<InsertResult[]> {
    const { ms } = this.shift;
    if (ms === 0) return this.store.insertTasks(tasks, now);
    const shifted = tasks.map((task) => ({
      ...task,
      dueAt: task.dueAt + ms,
      uniqueUntil: task.uniqueUntil ? task.uniqueUntil + ms : null,
    }));
    return this.store.insertTasks(shifted, now + ms);
  }

  async getTask(id: string): Promise<FullTask | Tombstone | undefined> {
    const found = await this.store.getTask(id);
    return found && 'lease' in found ? this.#own(found) : found;
  }

  async listTasks(query: TaskListQuery): Promise<TaskPage> {
    const { tasks, next } = await this.store.listTasks(query);
    return { tasks: tasks.map((task) => this.#own(task)), next };
  }

  countTasks(query: { queue: string; filter: TaskFilter }): Promise<TaskCount> {
    return this.store.countTasks(query);
  }

  cancelTask(change: CancelTaskChange): Promise<TaskChangeResult> {
    return this.store.cancelTask(this.#atNow(change));
  }

  cancelPending(change: CancelPendingChange): Promise<string[]> {
    return this.store.cancelPending(this.#atNow(change));
  }

  updateTask(change: UpdateTaskChange): Promise<TaskChangeResult> {
    const dueAt = change.dueAt === undefined ? undefined : change.dueAt + this.shift.ms;
    return this.store.updateTask({ ...this.#atNow(change), dueAt });
  }

  onEnded(listener: (id: string) => void): () => void {
    return this.store.onEnded(listener);
  }

  onCancelled(listener: (id: string) => void): () => void {
    return this.store.onCancelled(listener);
  }

  async claimDue(request: ClaimRequest): Promise<WholeTask[]> {
    const { ms } = this.shift;
    if (ms === 0) return this.store.claimDue(request);
    const leaseExpiresAt = request.leaseExpiresAt + ms;
    const tasks = await this.store.claimDue({ ...this.#atNow(request), leaseExpiresAt });
    return tasks.map((task) => this.#own(task));
  }

  async settle(settlements: readonly Settlement[]): Promise<SettleResult[]> {
    const { ms } = this.shift;
    if (ms === 0) return this.store.settle(settlements);
    const results = await this.store.settle(settlements.map((each) => shiftSettlement(each, ms)));
    return results.map((result) =>
      result.task ? { ...result, task: this.#own(result.task) } : result,
    );
  }

  async extendLease(
    change: Parameters<TaskStore['extendLease']>[0],
  ): Promise<Task | 'lease_lost' | 'not_found'> {
    const { ms } = this.shift;
    const expiresAt = change.expiresAt + ms;
    const progress = change.progress && { ...change.progress, at: change.progress.at + ms };
    const replaces = change.replaces === undefined ? undefined : change.replaces + ms;
    const shifted = { ...this.#atNow(change), expiresAt, replaces, progress };
    const moved = await this.store.extendLease(shifted);
    return typeof moved === 'string' ? moved : this.#own(moved);
  }

  async endedLeases(request: { now: number; limit: number }): Promise<WholeTask[]> {
    const tasks = await this.store.endedLeases(this.#atNow(request));
    return tasks.map((task) => this.#own(task));
  }

  expireTasks(request: { now: number; limit: number }): Promise<Task[]> {
    return this.store.expireTasks(this.#atNow(request));
  }

  async nextEventAt(): ReturnType<TaskStore['nextEventAt']> {
    const { ms } = this.shift;
    const { dueByQueue, upkeepAt } = await this.store.nextEventAt();
    if (ms === 0) return { dueByQueue, upkeepAt };
    const own = [...dueByQueue].map(([queue, at]) => [queue, at - ms] as const);
    return {
      dueByQueue: new Map(own),
      upkeepAt: upkeepAt === undefined ? undefined : upkeepAt - ms,
    };
  }

  groupIsBusy(request: { queue: string; groupKey: string; id: string }): Promise<boolean> {
    return this.store.groupIsBusy(request);
  }

  onWork(listener: (queue: string) => void): () => void {
    return this.store.onWork(listener);
  }

  noteWorkers(notes: readonly WorkerNote[], now: number): Promise<void> {
    const { ms } = this.shift;
    const shifted = notes.map((note) => ({ ...note, seenAt: note.seenAt + ms }));
    return this.store.noteWorkers(shifted, now + ms);
  }

  async listWorkers(request: { queue: string; seenSince: number }): Promise<WorkerStats[]> {
    const { ms } = this.shift;
    const seenSince = request.seenSince + ms;
    const workers = await this.store.listWorkers({ ...request, seenSince });
    return workers.map((worker) => ({ ...worker, lastSeenAt: worker.lastSeenAt - ms }));
  }

  deadTasks(request: DeadTaskQuery): Promise<DeadPage> {
    return this.store.deadTasks(request);
  }

  deadGroups(request: { queue: string; limit: number }): Promise<DeadGroup[]> {
    return this.store.deadGroups(request);
  }

  redrive(change: RedriveChange): Promise<string[]> {
    const { ms } = this.shift;
    const dueAt = (index: number) => change.dueAt(index) + ms;
    return this.store.redrive({ ...this.#atNow(change), diedBy: change.diedBy + ms, dueAt });
  }

  purge(change: PurgeChange): Promise<string[]> {
    return this.store.purge({ ...this.#atNow(change), diedBy: change.diedBy + this.shift.ms });
  }

  deleteFinished(request: Parameters<TaskStore['deleteFinished']>[0]): Promise<number> {
    const endedBefore = request.endedBefore + this.shift.ms;
    return this.store.deleteFinished({ ...this.#atNow(request), endedBefore });
  }

  deleteTombstones(request: { now: number; limit: number }): Promise<number> {
    return this.store.deleteTombstones(this.#atNow(request));
  }

  async listRecords(query: RecordQuery): Promise<StoredRecord[]> {
    const found = await this.store.listRecords(query);
    return found.map((record) => this.#ownRecord(record));
  }

  async listRecordStates(kind: RecordKind): Promise<RecordState[]> {
    const found = await this.store.listRecordStates(kind);
    return found.map((record) => this.#ownRecord(record));
  }

  async writeRecord(write: RecordWrite): Promise<RecordWriteResult> {
    const { ms } = this.shift;
    const tasks = write.tasks?.map((task) => ({ ...task, dueAt: task.dueAt + ms }));
    const result = await this.store.writeRecord({ ...this.#atNow(write), tasks });
    if (result.kind !== 'written') return result;
    return { ...result, record: this.#ownRecord(result.record) };
  }

  deleteRecord(key: RecordKey): Promise<boolean> {
    return this.store.deleteRecord(key);
  }

  async runJobStep(step: JobStep): Promise<JobStepResult> {
    const { ms } = this.shift;
    const change = { ...this.#atNow(step.change), diedBy: step.change.diedBy + ms };
    if (change.action === 'redrive') {
      const { dueAt } = change;
      change.dueAt = (index) => dueAt(index) + ms;
    }
    const result = await this.store.runJobStep({ ...step, change });
    return result.kind === 'done' ? { ...result, record: this.#ownRecord(result.record) } : result;
  }

  writeHistory(write: HistoryWrite): Promise<void> {
    return this.store.writeHistory(write);
  }

  readHistory(query: HistoryQuery): Promise<HistoryRow[]> {
    return this.store.readHistory(query);
  }

  readHistoryTotals(queue: string): Promise<HistoryTotals> {
    return this.store.readHistoryTotals(queue);
  }

  auditPage(request: AuditQuery): Promise<AuditRecord[]> {
    return this.store.auditPage(request);
  }

  probe(): Promise<void> {
    return this.store.probe();
  }

  close(): Promise<void> {
    return this.store.close();
  }

  transferEnd(): Source & Target {
    return this.store.transferEnd();
  }

  #atNow<Request extends { now: number }>(request: Request): Request {
    const { ms } = this.shift;
    return ms === 0 ? request : { ...request, now: request.now + ms };
  }

  /** The creation time in the time of this machine: a job compares it with the deaths of tasks. */
  #ownRecord<Shown extends RecordState>(record: Shown): Shown {
    const { ms } = this.shift;
    return ms === 0 ? record : { ...record, createdAt: record.createdAt - ms };
  }

  /** With its lease in the time of this machine. */
  #own<Shown extends Task>(task: Shown): Shown {
    const { ms } = this.shift;
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
