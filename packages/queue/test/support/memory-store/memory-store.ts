import type { AuditAction, AuditRecord } from '../../../src/core/audit.js';
import type { Queue, QueueCounts } from '../../../src/core/queue.js';
import type { FullTask, Task, Tombstone, WholeTask } from '../../../src/core/task.js';
import {
  cancelRow,
  deadFacts,
  DeadGroups,
  expireRow,
  failDependent,
  extendedExpiry,
  isClaimable,
  ListeningStore,
  mayEnd,
  newRow,
  redriveRow,
  settleRow,
  type TaskRow,
  toFullTask,
  toTask,
  updateRow,
  toTombstone,
  withAttempt,
} from '../../../src/storage/port/store-parts.js';
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
  type StepRecords,
  type StepResult,
  type SettleResult,
  type StoreCapabilities,
  type TaskStore,
  tombstoneMs,
} from '../../../src/storage/port/task-store.js';
import type {
  CancelPendingChange,
  CancelTaskChange,
  TaskChangeResult,
  UpdateTaskChange,
} from '../../../src/storage/port/task-changes.js';
import {
  matchesTaskFilter,
  pageOfAll,
  type TaskCount,
  type TaskFilter,
  type TaskListQuery,
  type TaskPage,
} from '../../../src/storage/port/task-list.js';
import {
  type EndStatus,
  flowWaitOf,
  isEnded,
  type WaitKind,
  never,
} from '../../../src/core/flow.js';
import { insertFlow, tasksEnded, tasksRedriven } from '../../../src/storage/port/flow-graph.js';
import { recordSteps, settleInFlow } from '../../../src/storage/port/flow-run.js';
import { type FlowChange, runNow } from '../../../src/storage/port/flow-program.js';
import type { AnyProgram } from '../../../src/storage/port/flow-store.js';
import {
  type FlowRow,
  type FlowRowQuery,
  type TaskWithResult,
} from '../../../src/storage/port/flow-store.js';
import { AuditLog } from './audit-log.js';
import { FlowRowMap } from './flow-row-map.js';
import { isDeadIn, showQueue, showWhole, type MemoryQueue, type MemoryRow } from './memory-rows.js';
import {
  type EventDetail,
  type EventPosition,
  settledEvents,
  type TaskEvent,
  type TaskEventType,
} from '../../../src/storage/port/events.js';
import { EventList } from './event-list.js';
import { RowMap } from './row-map.js';
import { cancelTask, updateTask } from './task-changes.js';
import { UniqueKeys, type KeyHolder } from './unique-keys.js';
import { deadPage } from './dead-page.js';
import { compareText } from './claim-order.js';
import { claimRows, endedLeaseRows, expiredRows, isGroupBusy, nextEvents } from './scans.js';

/**
 * The simplest task store: maps and full scans. It is the reference model for other stores, and
 * the storage of simulated servers.
 */
export class MemoryStore extends ListeningStore implements TaskStore {
  readonly capabilities: StoreCapabilities = {};
  readonly #queues = new Map<string, MemoryQueue>();
  readonly #rows = new Map<string, MemoryRow>();
  readonly #tombstones = new Map<string, Tombstone>();
  readonly #audit = new AuditLog();
  readonly #keys = new UniqueKeys();
  readonly #own = new RowMap();
  readonly #events = new EventList();
  readonly #flowRows = new FlowRowMap();
  #ended = new Map<string, EndStatus>();
  #endedAt = 0;
  #queuesMade = 0;

  async listQueues(): Promise<Queue[]> {
    const inOrder = [...this.#queues.values()].toSorted((a, b) => compareText(a.name, b.name));
    return inOrder.map(showQueue);
  }

  async getQueue(name: string): Promise<Queue | undefined> {
    const queue = this.#queues.get(name);
    return queue && showQueue(queue);
  }

  async putQueue({ queue: name, config, ifVersion, now, by }: QueuePut): Promise<QueuePutResult> {
    const before = this.#queues.get(name);
    if (ifVersion !== undefined && ifVersion !== (before?.version ?? 0)) {
      return { kind: 'version_mismatch', queue: before && showQueue(before) };
    }
    const queue: MemoryQueue = {
      name,
      config: structuredClone(config),
      paused: before?.paused ?? false,
      version: (before?.version ?? 0) + 1,
      incarnation: before?.incarnation ?? String(++this.#queuesMade),
      createdAt: before?.createdAt ?? now,
      updatedAt: now,
      turns: before?.turns ?? new Map(),
      starts: before?.starts ?? [],
    };
    this.#queues.set(name, queue);
    this.#record('config_write', { queue: name, now, by });
    this.#notify([name]);
    return { kind: 'written', queue: showQueue(queue), created: !before };
  }

  async setPaused(change: {
    queue: string;
    paused: boolean;
    now: number;
    by: string;
  }): Promise<boolean> {
    const queue = this.#queues.get(change.queue);
    if (!queue) return false;
    queue.paused = change.paused;
    this.#record(change.paused ? 'pause' : 'resume', change);
    this.#notify([queue.name]);
    return true;
  }

  async deleteQueue(change: {
    queue: string;
    now: number;
    by: string;
  }): Promise<'deleted' | 'not_empty' | 'not_found'> {
    if (!this.#queues.has(change.queue)) return 'not_found';
    const rows = this.#rowsOf(change.queue);
    if (rows.some((row) => row.status !== 'SUCCEEDED')) return 'not_empty';
    this.#replaceByTombstones(rows, change.now);
    this.#queues.delete(change.queue);
    this.#keys.deleteQueue(change.queue);
    this.#own.deleteOf(change.queue);
    this.#record('delete', change);
    return 'deleted';
  }

  async startEvents(now: number): Promise<EventPosition> {
    return this.#events.start(now);
  }

  async noteEvent({ type, at, detail, taskId: id, ...about }: TaskEvent): Promise<void> {
    this.#note(type, { ...about, id } as TaskRow, at, detail);
  }

  async readEvents(request: { after: EventPosition; limit: number }) {
    return this.#events.read(request);
  }

  #note(type: TaskEventType, row: TaskRow, at: number, detail: EventDetail = {}): void {
    if (this.#events.note(type, row, at, detail)) this.notifyEvents();
  }

  async counts(queue: string, now = Infinity): Promise<QueueCounts> {
    const waits: Partial<Record<WaitKind, number>> = {};
    const counts: QueueCounts = {
      pending: 0,
      inFlight: 0,
      dead: 0,
      delayed: 0,
      oldestDueAt: null,
      waits,
    };
    for (const row of this.#rowsOf(queue)) {
      if (row.status === 'IN_FLIGHT') counts.inFlight++;
      if (row.status === 'DEAD') counts.dead++;
      if (row.status !== 'PENDING') continue;
      counts.pending++;
      const kind = flowWaitOf(row);
      if (kind) waits[kind] = (waits[kind] ?? 0) + 1;
      if (row.dueAt! >= never) continue;
      counts.oldestDueAt = Math.min(counts.oldestDueAt ?? Infinity, row.dueAt!);
      if (row.dueAt! > now) counts.delayed++;
    }
    return counts;
  }

  async insertTasks(tasks: readonly NewTask[], now: number): Promise<InsertResult[]> {
    const results = this.#insertAll(tasks, now);
    this.#notify(tasks.filter((_, i) => results[i]!.kind === 'stored').map((task) => task.queue));
    return results;
  }

  async getTask(id: string): Promise<FullTask | Tombstone | undefined> {
    const row = this.#rows.get(id);
    return row ? toFullTask(row, showWhole(row), row.result) : this.#tombstones.get(id);
  }

  async listTasks(query: TaskListQuery): Promise<TaskPage> {
    return pageOfAll(this.#rowsOf(query.queue).map(toTask), query);
  }

  async countTasks({ queue, filter }: { queue: string; filter: TaskFilter }): Promise<TaskCount> {
    const rows = this.#rowsOf(queue).filter((row) => matchesTaskFilter(row, filter));
    return { count: rows.length, isEstimate: false };
  }

  async cancelTask(change: CancelTaskChange): Promise<TaskChangeResult> {
    const row = this.#rows.get(change.id);
    if (!row) return { kind: 'not_found' };
    const result = cancelTask(row, change);
    if (result.kind === 'refused') return result;
    const isChanged = result.kind === 'changed';
    this.#record('cancel', { ...change, queue: row.queue }, change.selector, isChanged ? 1 : 0);
    if (!isChanged) return result;
    this.notifyCancelled(change.id);
    this.#note('cancelled', row, change.now, { error: row.lastError });
    this.#end(row);
    this.#notifyWaiters();
    this.#notify([row.queue]);
    return result;
  }

  async cancelPending(change: CancelPendingChange): Promise<string[]> {
    if (!this.#queues.has(change.queue)) return [];
    const cancelled: string[] = [];
    for (const id of change.ids) {
      const row = this.#rows.get(id);
      if (row?.queue !== change.queue || row.status !== 'PENDING') continue;
      cancelRow(row, change.message, change.now);
      this.#note('cancelled', row, change.now, { error: row.lastError });
      this.#end(row);
      cancelled.push(id);
    }
    this.#notifyWaiters();
    this.#record('cancel', change, change.selector, cancelled.length);
    if (cancelled.length > 0) this.#notify([change.queue]);
    return cancelled;
  }

  async updateTask(change: UpdateTaskChange): Promise<TaskChangeResult> {
    const row = this.#rows.get(change.id);
    if (!row) return { kind: 'not_found' };
    const result = updateTask(row, change);
    if (result.kind !== 'changed') return result;
    this.#record(change.action, { ...change, queue: row.queue }, change.selector, 1);
    this.#notify([row.queue]);
    return result;
  }

  async claimDue(request: ClaimRequest): Promise<WholeTask[]> {
    const queue = this.#queues.get(request.queue);
    if (!isClaimable(queue, request)) return [];
    const claimed = claimRows(queue, this.#rowsOf(request.queue), request);
    for (const row of claimed) this.#note('started', row, request.now);
    return claimed.map(showWhole);
  }

  async settle(settlements: readonly Settlement[]): Promise<SettleResult[]> {
    const results = settlements.map((each) => {
      const isInFlow = each.suspension ?? each.steps;
      return isInFlow ? this.#run(settleInFlow(each), each.now) : this.#settle(each);
    });
    this.#notifyWaiters();
    for (const { task } of results) if (task) this.notifyEnded(task);
    this.#notify(results.flatMap((result) => (result.kind === 'settled' ? result.task.queue : [])));
    return results;
  }

  async extendLease(
    change: Parameters<TaskStore['extendLease']>[0],
  ): Promise<Task | 'lease_lost' | 'not_found'> {
    const row = this.#rows.get(change.id);
    if (!row) return 'not_found';
    if (row.lease?.token !== change.token) return 'lease_lost';
    row.lease.expiresAt = extendedExpiry(row.lease, change);
    row.lease.isAsync = change.isAsync;
    row.updatedAt = change.now;
    row.progress = change.progress ?? row.progress;
    const { progress } = change;
    if (progress) this.#note('progress', row, change.now, { progress });
    return toTask(row);
  }

  async endedLeases(request: { now: number; limit: number }): Promise<WholeTask[]> {
    return endedLeaseRows(this.#all(), request).map(showWhole);
  }

  async expireTasks(request: { now: number; limit: number }): Promise<Task[]> {
    const rows = expiredRows(this.#all(), request);
    for (const row of rows) {
      expireRow(row, request.now);
      this.#note('dead', row, request.now, { error: row.lastError, deadReason: 'EXPIRED' });
      this.#end(row);
    }
    this.#notifyWaiters();
    this.#notify(rows.map((row) => row.queue));
    return rows.map(toTask);
  }

  async nextEventAt(): ReturnType<TaskStore['nextEventAt']> {
    return nextEvents(this.#rows.values(), (queue) => this.#queues.get(queue)!.paused);
  }

  async groupIsBusy(request: GroupQuery): Promise<boolean> {
    return isGroupBusy(this.#rowsOf(request.queue), request);
  }

  async deadTasks(request: DeadTaskQuery): Promise<DeadPage> {
    return deadPage(this.#dead(request.queue).map(showWhole), request);
  }

  async deadGroups({ queue, limit }: { queue: string; limit: number }): Promise<DeadGroup[]> {
    const groups = new DeadGroups();
    for (const row of this.#dead(queue)) groups.add(row.id, deadFacts(row));
    return groups.top(limit);
  }

  async actOnDead(change: DeadChange): Promise<DeadChangeResult> {
    const { action, row, now } = change;
    const isThere = this.#queues.has(change.queue);
    if (row && (!isThere || this.#own.get(row)?.revision !== row.ifRevision)) {
      return { kind: 'conflict', ids: [] };
    }
    if (!isThere) return { kind: 'done', ids: [], dependents: 0, row: undefined };
    const ids = action === 'redrive' ? this.#redrive(change) : this.#purge(change);
    const { withDependents = true, fromStep } = change;
    const inFlow = ids.filter((id) => action === 'redrive' && this.#rows.get(id)!.flow);
    const program = tasksRedriven({ ids: inFlow, now, withDependents, fromStep });
    const dependents = this.#run(program, now);
    this.#notifyWaiters();
    if (row) {
      const value = row.value(ids.length);
      return { kind: 'done', ids, dependents, row: this.#own.put({ ...row, value }, now) };
    }
    this.#record(action, change, change.selector, ids.length);
    return { kind: 'done', ids, dependents, row: undefined };
  }

  #redrive(change: DeadChange): string[] {
    const changed: string[] = [];
    for (const [index, id] of change.ids.entries()) {
      const row = this.#rows.get(id);
      if (!row || !isDeadIn(row, change)) continue;
      redriveRow(row, change.dueAt?.(index) ?? change.now, change.now);
      this.#keys.holdAgain(row, change.now);
      changed.push(id);
    }
    if (changed.length > 0) this.#notify([change.queue]);
    return changed;
  }

  #purge(change: DeadChange): string[] {
    const rows = [...new Set(change.ids)].flatMap((id) => this.#rows.get(id) ?? []);
    const dead = rows.filter((row) => isDeadIn(row, change));
    this.#replaceByTombstones(dead, change.now);
    return dead.map((row) => row.id);
  }

  async deleteFinished(request: {
    queue: string;
    status: 'SUCCEEDED' | 'DEAD';
    endedBefore: number;
    now: number;
    limit: number;
  }): Promise<number> {
    const endedAt = (row: TaskRow) => (row.completedAt ?? row.deadAt)!;
    const rows = this.#rowsOf(request.queue)
      .filter((row) => row.status === request.status && endedAt(row) < request.endedBefore)
      .filter((row) => row.options?.retainMs === undefined && this.#isReadByParent(row))
      .toSorted((a, b) => endedAt(a) - endedAt(b) || compareText(a.id, b.id))
      .slice(0, request.limit);
    this.#replaceByTombstones(rows, request.now);
    return rows.length;
  }

  async deleteRetained({ now, limit }: { now: number; limit: number }): Promise<number> {
    const rows = this.#all().filter((row) => {
      const endedAt = row.completedAt ?? row.deadAt ?? Infinity;
      const retainMs = row.options?.retainMs;
      return retainMs !== undefined && endedAt + retainMs <= now && this.#isReadByParent(row);
    });
    this.#replaceByTombstones(rows.slice(0, limit), now);
    return Math.min(rows.length, limit);
  }

  #isReadByParent({ flow }: TaskRow): boolean {
    const parent = this.#all().find(({ id }) => id === flow?.parentId);
    return !parent || isEnded(parent.status);
  }

  async deleteTombstones({ now, limit }: { now: number; limit: number }): Promise<number> {
    const old = [...this.#tombstones.values()]
      .filter((tombstone) => tombstone.purgedAt <= now - tombstoneMs)
      .slice(0, limit);
    for (const { id } of old) this.#tombstones.delete(id);
    this.#events.trim(now);
    return old.length;
  }

  async listRows(range: RowRange): Promise<Row[]> {
    return this.#own.list(range);
  }

  async writeRows({ puts = [], removals = [], tasks = [], audit, now }: RowBatch) {
    const result = this.#own.write({ puts, removals, now }, (queue) => this.#queues.has(queue));
    if (result.kind !== 'written') return result;
    const inserted = this.#insertAll(tasks, now);
    if (audit) this.#audit.add({ ...audit, at: now });
    this.#notify(tasks.map((task) => task.queue));
    return { ...result, inserted } satisfies RowBatchResult;
  }

  async auditPage(request: AuditQuery): Promise<AuditRecord[]> {
    return this.#audit.page(request);
  }

  async probe(): Promise<void> {}

  /** Keeps the data: the next server continues with it. */
  async close(): Promise<void> {
    this.removeListeners();
  }

  #insert(task: NewTask, now: number): InsertResult {
    if (!this.#queues.has(task.queue)) return { kind: 'queue_not_found' };
    const row = this.#rows.get(task.id);
    if (row) return { kind: 'existing', task: toTask(row) };
    const tombstone = this.#tombstones.get(task.id);
    if (tombstone && tombstone.purgedAt > now - tombstoneMs) return { kind: 'purged', tombstone };
    const holder = task.uniqueKey && this.#keys.holder(task.queue, task.uniqueKey, now);
    const held = holder ? this.#rows.get(holder.id) : undefined;
    if (task.isDebounced && held?.status === 'PENDING') {
      const { payload: bytes, payloadContentType: contentType, dueAt } = task;
      updateRow(held, { dueAt, payload: { bytes, contentType }, now });
      held.payload = bytes;
      return { kind: 'existing', task: toTask(held) };
    }
    if (holder && !task.isDebounced) return this.#heldBy(holder, task.queue, now);
    const isFull = () =>
      this.#rowsOf(task.queue).filter((other) => other.status === 'PENDING').length >=
      task.maxPending;
    if (task.maxPending > 0 && isFull()) return { kind: 'queue_full' };
    this.#tombstones.delete(task.id);
    const stored = { ...newRow(task, now), payload: task.payload, attempts: [], result: null };
    this.#rows.set(task.id, stored);
    this.#keys.hold(stored);
    this.#note('submitted', stored, now);
    return { kind: 'stored', task: toTask(stored) };
  }

  #heldBy(holder: KeyHolder, queue: string, now: number): InsertResult {
    const { id, handlerRef, status } = holder;
    const row = this.#rows.get(id);
    if (row) return { kind: 'existing', task: toTask(row) };
    const left = { id, queue, handlerRef, status: status ?? 'SUCCEEDED', purgedAt: now };
    return { kind: 'purged', tombstone: this.#tombstones.get(id) ?? left };
  }

  /** The task has ended. */
  #end(row: MemoryRow): void {
    this.#keys.release(row);
    this.notifyEnded(row);
    this.#noteEnd(row);
  }

  #noteEnd({ id, status, flow, completedAt, deadAt }: MemoryRow): void {
    if (!isEnded(status) || !flow?.hasWaiters) return;
    this.#ended.set(id, status);
    this.#endedAt = (completedAt ?? deadAt)!;
  }

  #notifyWaiters(): void {
    while (this.#ended.size > 0) {
      const ended = this.#ended;
      this.#ended = new Map();
      this.#run(tasksEnded(ended, this.#endedAt), this.#endedAt);
    }
  }

  #insertAll(tasks: readonly NewTask[], now: number): InsertResult[] {
    if (!tasks.some(({ flow }) => flow)) return tasks.map((task) => this.#insert(task, now));
    const results = this.#run(insertFlow(tasks, now), now);
    this.#notifyWaiters();
    return results;
  }

  #run<Result>(program: AnyProgram<Result>, now: number): Result {
    return runNow(program, {
      lock: () => undefined,
      tasks: ({ ids }) =>
        new Map(
          ids.flatMap((id) => {
            const row = this.#rows.get(id);
            const found = row ? toTask(row) : this.#tombstones.get(id);
            return found ? [[id, found] as const] : [];
          }),
        ),
      insert: ({ tasks }) => tasks.map((task) => this.#insert(task, now)),
      settle: ({ settlement }) => this.#settle(settlement),
      change: ({ changes }) => changes.forEach((change) => this.#changeFlow(change, now)),
      rows: (query) => this.#flowRows.read(query),
      write: (change) => this.#flowRows.write(change),
    });
  }

  #changeFlow({ id, flow, dueAt, dead, redriveAt }: FlowChange, now: number): void {
    const row = this.#rows.get(id)!;
    if (redriveAt !== undefined) {
      redriveRow(row, redriveAt, now);
      this.#keys.holdAgain(row, now);
    }
    row.flow = flow;
    if (dead) {
      failDependent(row, dead);
      this.#keys.release(row);
      this.#noteEnd(row);
      this.#note('dead', row, now, { error: dead, deadReason: 'DEPENDENCY_FAILED' });
      this.notifyEnded(row);
    } else if (dueAt !== undefined) {
      row.dueAt = dueAt;
      row.updatedAt = now;
    }
    this.#notify([row.queue]);
  }

  recordSteps(request: StepRecords): Promise<StepResult> {
    return this.runFlow(() => recordSteps(request), request.now);
  }

  async runFlow<Result>(start: () => AnyProgram<Result>, now: number): Promise<Result> {
    const before = new Set(this.#rows.keys());
    try {
      const result = this.#run(start(), now);
      this.#notifyWaiters();
      return result;
    } catch (error) {
      // Only programs that store tasks throw.
      for (const [id, { flow }] of this.#rows) {
        if (before.has(id)) continue;
        this.#rows.delete(id);
        this.#flowRows.deleteOf(id, flow ?? {});
      }
      throw error;
    }
  }

  async readFlowRows(query: FlowRowQuery): Promise<FlowRow[]> {
    return this.#flowRows.read(query);
  }

  async readTasks(ids: readonly string[]): Promise<TaskWithResult[]> {
    const rows = ids.flatMap((id) => this.#rows.get(id) ?? []);
    return rows.map((row) => ({ ...toTask(row), result: row.result }));
  }

  async holderOf(queue: string, uniqueKey: string, now: number): Promise<string | undefined> {
    return this.#keys.holder(queue, uniqueKey, now)?.id;
  }

  async wake(): Promise<number> {
    return 0;
  }

  #settle(settlement: Settlement): SettleResult {
    const row = this.#rows.get(settlement.id);
    if (!row) return { kind: 'lease_lost', task: undefined };
    if (row.lease?.token === settlement.token && mayEnd(row.lease, settlement)) {
      settleRow(row, settlement);
      if (settlement.verdict.kind !== 'suspended') {
        row.attempts = withAttempt(row.attempts, settlement.attempt);
      }
      if (row.status === 'SUCCEEDED') row.result = settlement.result ?? null;
      if (row.status !== 'PENDING') this.#keys.release(row);
      this.#noteEnd(row);
      for (const [type, detail] of settledEvents(settlement, row.dueAt)) {
        this.#note(type, row, settlement.now, detail);
      }
      return { kind: 'settled', task: toTask(row) };
    }
    if (row.settled?.token === settlement.token) {
      return { kind: 'repeated', task: toTask(row), verdict: row.settled.verdict };
    }
    return { kind: 'lease_lost', task: toTask(row) };
  }

  #all(): MemoryRow[] {
    return [...this.#rows.values()];
  }

  #rowsOf(queue: string): MemoryRow[] {
    return this.#all().filter((row) => row.queue === queue);
  }

  /** In the order of their deaths. */
  #dead(queue: string): MemoryRow[] {
    return this.#rowsOf(queue)
      .filter((row) => row.status === 'DEAD')
      .toSorted((a, b) => a.deadAt! - b.deadAt! || compareText(a.id, b.id));
  }

  #replaceByTombstones(rows: readonly MemoryRow[], now: number): void {
    for (const row of rows) {
      this.#rows.delete(row.id);
      if (row.flow) this.#flowRows.deleteOf(row.id, row.flow);
      this.#keys.keepOfDeleted(row);
      this.#tombstones.set(row.id, toTombstone(row, now));
    }
  }

  #record(
    action: AuditAction,
    { queue, now, by }: { queue: string; now: number; by: string },
    selector: AuditRecord['selector'] = null,
    count: number | null = null,
  ): void {
    this.#audit.add({ at: now, principal: by, action, queue, selector, count });
  }

  #notify(queues: readonly string[]): void {
    for (const queue of new Set(queues)) this.notifyWork(queue);
  }
}
