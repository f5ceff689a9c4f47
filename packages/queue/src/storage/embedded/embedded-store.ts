import { type CommitTarget, type Database, type RowReader } from '@millrace/engine';
import { messageOf, Refusal } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import type { Random } from '@millrace/kit/random';
import type { AuditRecord } from '../../core/audit.js';
import { never } from '../../core/flow.js';
import type { Queue, QueueCounts } from '../../core/queue.js';
import type { FullTask, Task, Tombstone, WholeTask } from '../../core/task.js';
import {
  type AuditQuery,
  type ClaimRequest,
  type DeadChange,
  type DeadChangeResult,
  type DeadGroup,
  type DeadPage,
  type DeadTaskQuery,
  type GroupQuery,
  type InsertResult,
  type NewTask,
  type QueuePut,
  type QueuePutResult,
  type Row,
  type RowBatch,
  type RowBatchResult,
  type RowRange,
  type Settlement,
  type SettleResult,
  type StepRecords,
  type StepResult,
  StorageUnavailable,
  type TaskStore,
} from '../port/task-store.js';
import type {
  CancelPendingChange,
  CancelTaskChange,
  TaskChangeResult,
  UpdateTaskChange,
} from '../port/task-changes.js';
import type { TaskCount, TaskFilter, TaskListQuery, TaskPage } from '../port/task-list.js';
import { ListeningStore } from '../port/store-parts.js';
import { Batcher, RecentTasks, Step } from './step.js';
import { actOnDead, DeadGroupsReader, DeadPageReader } from './dead-rows.js';
import {
  delayedCount,
  DueTimes,
  oldestDueAt,
  readCounters,
  readPlainQueue,
  readQueue,
  toQueue,
  queues,
  UpkeepTime,
} from './queue-state.js';
import * as upkeep from './upkeep.js';
import {
  deleteQueue,
  listRows,
  putQueue,
  type QueueAct,
  setPaused,
  writeRows,
} from './queue-acts.js';
import * as reading from './reading.js';
import * as changes from './transitions.js';
import { countReader, pageReader } from './listing.js';
import { hasEndedKeys, holderOf } from './indexes.js';
import { insertFlow } from '../port/flow-graph.js';
import { runNow } from '../port/flow-program.js';
import type { AnyProgram, FlowRow, FlowRowQuery, TaskWithResult } from '../port/flow-store.js';
import { readFlowRows } from './flow-rows.js';
import { finishFlows, flowIo, recordSteps, settleInFlow } from './flows.js';
import { EventRecorder } from './events.js';
import type { EventPosition, TaskEvent } from '../port/events.js';
import { latestTime } from './keys.js';

const deletedPerStep = 500;
const maxBatchedTasks = 500;
/** A program may insert a thousand tasks. */
const maxBatchedPrograms = 64;

/** The task store on the database engine in this process. Opened by `openEmbeddedStore`. */
export class EmbeddedStore extends ListeningStore implements TaskStore {
  /** The engine's writer runs calls in the order in which they arrive. */
  readonly capabilities = { claimsFollowSettlements: true };
  readonly #recent = new RecentTasks();
  readonly #due = new DueTimes(this.#recent.queues);
  readonly #upkeep = new UpkeepTime();
  /** Queues whose last claim was cut short by `max_in_flight`. */
  readonly #limited = new Set<string>();
  readonly #inserts: Batcher<{ task: NewTask; now: number }, InsertResult>;
  readonly #settlements: Batcher<Settlement, SettleResult>;
  readonly #flows: Batcher<{ start: () => AnyProgram<unknown>; now: number }, unknown>;
  readonly #steps: Batcher<StepRecords, StepResult>;
  readonly #events = new EventRecorder();
  /** Resolves when all tasks are in the lists of tasks. */
  #listed: Promise<void> | undefined;
  #isClosed = false;

  constructor(
    private readonly database: Database,
    private readonly random: Random,
    /** The database is open elsewhere too, and is not closed with the store. */
    readonly isShared = false,
  ) {
    super();
    const transact = <Result>(run: (step: Step) => Result) => this.#transact(run);
    const shared = { transact, maxItems: maxBatchedTasks };
    this.#inserts = new Batcher({
      ...shared,
      run: (step, { task, now }) => changes.insertTask(step, task, now),
      notify: (queue, handlers) => this.notifyWork(queue, handlers),
    });
    this.#settlements = new Batcher({
      ...shared,
      run: (step, each) => this.#settleNow(step, each),
    });
    this.#flows = new Batcher({
      transact,
      maxItems: maxBatchedPrograms,
      run: (step, { start, now }) => runNow(start(), flowIo(step, now)),
    });
    this.#steps = new Batcher({ ...shared, run: recordSteps });
    this.#read((rows) => this.#events.load(rows));
  }

  async listQueues(): Promise<Queue[]> {
    return this.#read((rows) => queues(rows).map(toQueue));
  }

  async getQueue(name: string): Promise<Queue | undefined> {
    const { queues } = this.#recent;
    return queues.known(name) ?? this.#read((rows) => queues.decoded(rows, name)?.queue);
  }

  async putQueue(put: QueuePut): Promise<QueuePutResult> {
    const incarnation = this.random.ulid(put.now);
    const result = await this.#change(put.queue, (step) => putQueue(step, put, incarnation));
    if (result.kind === 'written') {
      this.#due.forgetQueues();
      this.#workChanged(put.queue);
    }
    return result;
  }

  async setPaused(change: QueueAct & { paused: boolean }): Promise<boolean> {
    const isThere = await this.#change(change.queue, (step) => setPaused(step, change));
    if (isThere) this.#workChanged(change.queue);
    return isThere;
  }

  async deleteQueue(change: QueueAct): Promise<'deleted' | 'not_empty' | 'not_found'> {
    const result = await this.#change(change.queue, (step) => deleteQueue(step, change));
    if (typeof result !== 'number') return result;
    this.#due.forgetQueues();
    await this.deleteTasksOf(result);
    return 'deleted';
  }

  async counts(name: string, now = latestTime): Promise<QueueCounts> {
    return this.#read((rows) => {
      const queue = readQueue(rows, name);
      if (!queue) {
        return { pending: 0, delayed: 0, inFlight: 0, dead: 0, oldestDueAt: null, waits: {} };
      }
      const { pending, inFlight, dead, waits = {} } = readCounters(rows, queue.number);
      return {
        pending,
        delayed: delayedCount(rows, queue.number, now),
        inFlight,
        dead,
        oldestDueAt: pending === 0 ? null : oldestDueAt(rows, queue.number),
        waits,
      };
    });
  }

  async insertTasks(tasks: readonly NewTask[], now: number): Promise<InsertResult[]> {
    if (tasks.some(({ flow }) => flow)) return this.runFlow(() => insertFlow(tasks, now), now);
    const work = changes.handlersByQueue(tasks);
    const queues = new Set(work.keys());
    this.#due.beginInsert(queues);
    try {
      // Listeners are notified before the commit: a claim made now runs behind the insert in the
      // writer's queue and mostly shares its commit. Neither resolves before that is on disk.
      return await this.#inserts.add(
        tasks.map((task) => ({ task, now })),
        work,
      );
    } finally {
      this.#due.endInsert(queues);
    }
  }

  async runFlow<Result>(start: () => AnyProgram<Result>, now: number): Promise<Result> {
    const [result] = await this.#flows.add([{ start, now }]);
    return result as Result;
  }

  async recordSteps(request: StepRecords): Promise<StepResult> {
    const [result] = await this.#steps.add([request]);
    return result!;
  }

  async readFlowRows(query: FlowRowQuery): Promise<FlowRow[]> {
    return this.#read((rows) => readFlowRows(rows, query));
  }

  async readTasks(ids: readonly string[]): Promise<TaskWithResult[]> {
    return this.#read((rows) => reading.tasksWithResults(rows, ids));
  }

  async holderOf(queue: string, uniqueKey: string, now: number): Promise<string | undefined> {
    return this.#read((rows) => {
      const found = readQueue(rows, queue);
      return found && holderOf(rows, found.number, uniqueKey, now)?.id;
    });
  }

  /** Every end and what follows from it are one commit here. */
  async wake(): Promise<number> {
    return 0;
  }

  /**
   * Stores a task in a job that somebody else runs on the database: with the records that it writes,
   * or not at all. `stored` is called when it is on disk.
   */
  insertIn(
    { rows }: Pick<CommitTarget, 'rows'>,
    name: string,
    newTask: (queue: Queue) => { task: NewTask; now: number },
    stored: (task: NewTask, result: InsertResult) => void,
  ): InsertResult {
    const queue = readPlainQueue(rows, name);
    if (!queue) return { kind: 'queue_not_found' };
    const { task, now } = newTask(queue);
    const step = new Step(rows, this.#recent);
    const result = task.flow
      ? runNow(insertFlow([task], now), flowIo(step, now))[0]!
      : changes.insertTask(step, task, now);
    if (step.ended.size > 0) finishFlows(step);
    step.finish();
    // Runs behind the job that this one is part of, once if that is repeated.
    void this.database
      .transact(() => undefined)
      .then(
        () => {
          this.#upkeep.forget();
          this.#workChanged(name);
          if (this.#read((committed) => reading.task(committed, task.id, this.#recent)))
            stored(task, result);
        },
        () => this.#forgetTimes(),
      );
    return result;
  }

  async getTask(id: string): Promise<FullTask | Tombstone | undefined> {
    return this.#read((rows) => reading.task(rows, id, this.#recent));
  }

  async listTasks(query: TaskListQuery): Promise<TaskPage> {
    await this.#oldTasksListed();
    const reader = this.#read((rows) => pageReader(rows, query));
    await this.#readSlices(reader);
    return reader.page;
  }

  async countTasks(query: { queue: string; filter: TaskFilter }): Promise<TaskCount> {
    await this.#oldTasksListed();
    const reader = this.#read((rows) => countReader(rows, query));
    await this.#readSlices(reader);
    return reader.count;
  }

  async cancelTask(change: CancelTaskChange): Promise<TaskChangeResult> {
    const result = await this.#transact((step) => changes.cancelTask(step, change));
    if (result.kind === 'changed') {
      this.notifyCancelled(change.id);
      this.notifyEnded(result.task);
      this.#workChanged(result.task.queue);
    }
    return result;
  }

  async cancelPending(change: CancelPendingChange): Promise<string[]> {
    const { queue } = change;
    const cancelled = await this.#transact((step) =>
      step.queue(queue) ? changes.cancelPending(step, change) : [],
    );
    for (const id of cancelled) this.notifyEnded({ id, status: 'DEAD' });
    if (cancelled.length > 0) this.#workChanged(queue);
    return cancelled;
  }

  async updateTask(change: UpdateTaskChange): Promise<TaskChangeResult> {
    const result = await this.#transact((step) => changes.updateTask(step, change));
    if (result.kind === 'changed') this.#workChanged(result.task.queue);
    return result;
  }

  async claimDue(request: ClaimRequest): Promise<WholeTask[]> {
    // A read costs far less than a commit that changes nothing.
    const { queue, now } = request;
    const mayBeDue = (rows: RowReader) => this.#due.isDue(queue, now, rows);
    if (!this.#due.isAssumedDue(queue) && !this.#read(mayBeDue)) return [];
    let result: changes.ClaimResult | undefined;
    while (!(result = await this.#transact((step) => changes.claimDue(step, request)))) {
      await this.#untilDone((step) => changes.reorder(step, queue, request.fifoGroups));
    }
    const { tasks, isLimited } = result;
    if (isLimited) this.#limited.add(queue);
    else this.#limited.delete(queue);
    // After a full claim there is probably more: the next one need not read first.
    if (tasks.length === request.limit) this.#due.assumeDue(queue);
    else this.#due.forget(queue);
    return tasks;
  }

  async settle(settlements: readonly Settlement[]): Promise<SettleResult[]> {
    const results = await this.#settlements.add(settlements);
    const work = new Map<string, Set<string>>();
    results.forEach((result, i) => {
      if (result.kind !== 'settled') return;
      const { queue, status, dueAt, handlerRef } = result.task;
      const handlers = work.get(queue) ?? new Set();
      work.set(queue, handlers);
      this.notifyEnded(result.task);
      if (status !== 'PENDING') return;
      this.#due.forget(queue);
      // What was due at once could be claimed in the same commit.
      if (dueAt! > settlements[i]!.now && dueAt! < never) handlers.add(handlerRef);
    });
    for (const [queue, handlers] of work) this.notifyWork(queue, handlers);
    return results;
  }

  #settleNow(step: Step, settlement: Settlement): SettleResult {
    const { suspension, steps, now } = settlement;
    const result =
      suspension || steps ? settleInFlow(step, settlement) : changes.settle(step, settlement);
    if (result.kind !== 'settled') return result;
    const { queue, dueAt, groupKey } = result.task;
    // A free slot of `max_in_flight`, the next task of a group, or the task itself.
    const isWork = this.#limited.has(queue) || groupKey !== null || (dueAt ?? never) <= now;
    if (isWork) step.woken.queues.add(queue);
    return result;
  }

  async extendLease(
    change: Parameters<TaskStore['extendLease']>[0],
  ): Promise<Task | 'lease_lost' | 'not_found'> {
    return this.#transact((step) => changes.extendLease(step, change));
  }

  async endedLeases(request: { now: number; limit: number }): Promise<WholeTask[]> {
    return this.#read((rows) => upkeep.endedLeases(rows, request));
  }

  async expireTasks(request: { now: number; limit: number }): Promise<Task[]> {
    if (!this.#read((rows) => reading.hasExpired(rows, request.now))) return [];
    const expired = await this.#transact((step) => upkeep.expireTasks(step, request));
    for (const task of expired) this.notifyEnded(task);
    for (const queue of new Set(expired.map((task) => task.queue))) this.#workChanged(queue);
    return expired;
  }

  async nextEventAt({ mayBeEarly = false } = {}): ReturnType<TaskStore['nextEventAt']> {
    return this.#read((rows) => ({
      dueByQueue: this.#due.read(rows),
      upkeepAt: this.#upkeep.read(rows, mayBeEarly),
    }));
  }

  async groupIsBusy(request: GroupQuery): Promise<boolean> {
    return this.#read((rows) => reading.groupIsBusy(rows, request));
  }

  async deadTasks(request: DeadTaskQuery): Promise<DeadPage> {
    const queue = this.#read((rows) => readQueue(rows, request.queue));
    if (!queue) return { tasks: [], next: undefined };
    const reader = new DeadPageReader(queue.number, request);
    await this.#readSlices(reader);
    return reader.page;
  }

  async deadGroups(request: { queue: string; limit: number }): Promise<DeadGroup[]> {
    const queue = this.#read((rows) => readQueue(rows, request.queue));
    if (!queue) return [];
    const reader = new DeadGroupsReader(queue.number);
    await this.#readSlices(reader);
    return reader.groups.top(request.limit);
  }

  async actOnDead(change: DeadChange): Promise<DeadChangeResult> {
    const result = await this.#transact((step) => actOnDead(step, change));
    if (result.ids.length > 0 && change.action === 'redrive') this.#workChanged(change.queue);
    return result;
  }

  async deleteFinished(request: Parameters<TaskStore['deleteFinished']>[0]): Promise<number> {
    if (!this.#read((rows) => reading.hasFinished(rows, request))) return 0;
    return this.#transact((step) => upkeep.deleteFinished(step, request));
  }

  async deleteTombstones(request: { now: number; limit: number }): Promise<number> {
    const { now } = request;
    const hasWork = (rows: RowReader) =>
      reading.hasOldTombstones(rows, now) ||
      hasEndedKeys(rows, now) ||
      this.#events.hasLeftovers(rows, now);
    if (!this.#read(hasWork)) return 0;
    return this.#transact((step) => {
      this.#events.trim(step.rows, now);
      return upkeep.deleteTombstones(step, request);
    });
  }

  startEvents(now: number): Promise<EventPosition> {
    return this.#transact((step) => this.#events.start(step.rows, now));
  }

  async noteEvent(event: TaskEvent): Promise<void> {
    if (event.at < this.#events.until)
      await this.#transact(({ events }) => void events.push(event));
  }

  async readEvents({ after, limit }: { after: EventPosition; limit: number }) {
    return this.#read((rows) => this.#events.read(rows, after[0], limit));
  }

  async deleteRetained(request: { now: number; limit: number }): Promise<number> {
    if (!this.#read((rows) => upkeep.hasRetained(rows, request.now))) return 0;
    return this.#transact((step) => upkeep.deleteRetained(step, request));
  }

  async listRows(range: RowRange): Promise<Row[]> {
    return this.#read((rows) => listRows(rows, range));
  }

  async writeRows(batch: RowBatch): Promise<RowBatchResult> {
    const result = await this.#transact((step) => writeRows(step, batch));
    if (result.kind === 'written') {
      for (const queue of new Set(batch.tasks?.map((task) => task.queue))) this.#workChanged(queue);
    }
    return result;
  }

  backup(sinceSeq?: number): Promise<AsyncIterable<Uint8Array>> {
    return this.database.backupBytes({ batches: true, sinceSeq });
  }

  async auditPage(request: AuditQuery): Promise<AuditRecord[]> {
    const reader = new reading.AuditReader(request);
    await this.#readSlices(reader);
    return reader.records;
  }

  /** Uses the writer and the disk, because those are what may fail. */
  async probe(): Promise<void> {
    await this.#transact(() => undefined);
  }

  async close(): Promise<void> {
    this.removeListeners();
    this.#isClosed = true;
    await this.#listed?.catch(() => undefined);
    if (!this.isShared) await this.database.close();
  }

  /** Starts to add the tasks of an older version to the lists; lists and counts wait for it. */
  listOldTasks(log: Log): void {
    this.#oldTasksListed().catch((error: unknown) => {
      log.warn({ err: error }, 'failed to upgrade the lists of tasks');
    });
  }

  #oldTasksListed(): Promise<void> {
    this.#listed ??= upkeep
      .listOldTasks(this.database, () => this.#isClosed)
      .catch((error: unknown) => {
        // The next call tries again.
        this.#listed = undefined;
        throw unavailable(error);
      });
    return this.#listed;
  }

  /** Deletes the tasks of deleted queues, also after a crash. */
  async finishQueueDeletions(): Promise<void> {
    for (const queue of this.#read(reading.deletedQueues)) await this.deleteTasksOf(queue);
  }

  private async deleteTasksOf(queue: number): Promise<void> {
    await this.#untilDone((step) => upkeep.deleteTasksOf(step, queue, deletedPerStep));
  }

  async #untilDone(run: (step: Step) => boolean): Promise<void> {
    while (!(await this.#transact(run))) continue;
  }

  /** Runs a step as one commit. Resolves when it is on disk. */
  async #transact<Result>(run: (step: Step) => Result): Promise<Result> {
    const bug: { thrown?: unknown } = {};
    let last: Step | undefined;
    const woken = new Set<string>();
    try {
      const done = await this.database.transact((target) => {
        try {
          const step = new Step(target.rows, this.#recent, this.#events);
          const result = run(step);
          if (step.ended.size > 0) finishFlows(step);
          step.finish();
          last = step;
          for (const queue of step.woken.queues) this.#wakeNow(queue, woken);
          return result;
        } catch (error) {
          bug.thrown = error;
          throw error;
        }
      });
      if (last) this.#upkeep.lower(last.soonest);
      if (last && last.events.length > 0) this.notifyEvents();
      for (const id of last?.woken.dead ?? []) this.notifyEnded({ id, status: 'DEAD' });
      return done;
    } catch (error) {
      this.#forgetTimes();
      throw error === bug.thrown ? unavailableIfRefused(error) : unavailable(error);
    } finally {
      this.#due.endInsert(woken);
    }
  }

  /** A failed commit may be on disk nevertheless. */
  #forgetTimes(): void {
    this.#due.forgetAll();
    this.#upkeep.forget();
  }

  /**
   * A job of the writer made work of a queue. Listeners are notified before the commit, as for
   * inserts: the claim that they make shares it. `woken`: the queues for which that was done.
   */
  #wakeNow(queue: string, woken: Set<string>): void {
    if (!woken.has(queue)) this.#due.beginInsert([queue]);
    woken.add(queue);
    this.database.core.writer.expectJobs();
    queueMicrotask(() => this.notifyWork(queue));
  }

  /** A change of the queue itself. */
  async #change<Result>(queue: string, run: (step: Step) => Result): Promise<Result> {
    this.#recent.queues.changeQueue(queue);
    try {
      return await this.#transact(run);
    } finally {
      this.#recent.queues.queueChanged(queue);
    }
  }

  #read<Result>(read: (rows: RowReader) => Result): Result {
    try {
      return this.database.readRows(read);
    } catch (error) {
      throw unavailableIfRefused(error);
    }
  }

  async #readSlices(reader: { readSlice(rows: RowReader): boolean }): Promise<void> {
    while (!this.#read((rows) => reader.readSlice(rows))) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  #workChanged(queue: string): void {
    this.#due.forget(queue);
    this.notifyWork(queue);
  }
}

function unavailable(error: unknown): StorageUnavailable {
  return new StorageUnavailable(`The store does not respond: ${messageOf(error)}`, {
    cause: error,
  });
}

/** A refusal of the engine means unavailable; everything else is a bug and is thrown as it is. */
function unavailableIfRefused(error: unknown): unknown {
  return error instanceof Refusal ? unavailable(error) : error;
}
