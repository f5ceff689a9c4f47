import type { Timer } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { Random } from '@millrace/kit/random';
import type { AuditRecord } from '../../core/audit.js';
import type { Queue, QueueCounts } from '../../core/queue.js';
import type { FullTask, Task, Tombstone, WholeTask } from '../../core/task.js';
import { expiredError } from '../port/store-parts.js';
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
  type StoreCapabilities,
  type TaskStore,
} from '../port/task-store.js';
import type {
  CancelPendingChange,
  CancelTaskChange,
  TaskChangeResult,
  UpdateTaskChange,
} from '../port/task-changes.js';
import type { TaskCount, TaskFilter, TaskListQuery, TaskPage } from '../port/task-list.js';
import type { EventPage, EventPosition, TaskEvent } from '../port/events.js';
import { readAudit, recordAct } from './audit.js';
import { PostgresEvents } from './events.js';
import { Batcher } from './batches.js';
import { ClaimedTasks, extendLease, settleAll, settledQueues } from './settlements.js';
import { Claims } from './claims.js';
import type { Connections } from './connections.js';
import { Counters, counts } from './counters.js';
import {
  type DatabaseClock,
  leaveClaimants,
  type NotificationListeners,
  type Notifications,
  readTime,
} from './notifications.js';
import { actOnDead, readDeadGroups, readDeadPage } from './dead-letters.js';
import { expireTasks, Expiries, Leases, nextDue } from './upkeep.js';
import { type Insert, insertAll, insertInTransaction } from './inserts.js';
import * as acts from './queues.js';
import { listQueues, type QueueAct, type QueueColumns, toQueue } from './queues.js';
import { Retention } from './retention.js';
import { listRows, writeRows } from './rows.js';
import * as columns from './tasks.js';
import * as changes from './task-changes.js';
import { TaskLists } from './task-lists.js';
import type { SkippingStatement, Statement } from './statement.js';
import type { Source, Target } from '../transfer/moved.js';
import { PostgresEnd } from './transfer-end.js';
import { waitKinds } from '../../core/flow.js';
import { insertFlow } from '../port/flow-graph.js';
import { recordAll, settleInFlow } from '../port/flow-run.js';
import { runLater } from '../port/flow-program.js';
import { takeFlowEnds } from './flow.sql.js';
import { type FlowParts, PostgresFlows } from './flow-store.js';
import { flowIo } from './flows.js';
import { findTasks, findWholeTasks } from './tasks.js';
import { groupIsBusy, groupIsFull } from './task-changes.js';

export interface PostgresStoreParts {
  connections: Connections;
  notifications: (listeners: NotificationListeners) => Notifications;
  /** Identifies this server among those on the database. */
  instance: string;
  /** The database supports SKIP LOCKED. */
  canSkip: boolean;
  cursorKey: Uint8Array;
  clock: DatabaseClock;
  random: Random;
  log: Log;
}

/** Tasks of different callers that may share a commit. */
const batching = { maxItems: 500, maxConcurrent: 1 };
const maxPayloadBytes = 4 * 2 ** 20;
const clockIntervalMs = 10_000;

/** The store on a PostgreSQL that other servers may share. Use `openPostgresStore`. */
export class PostgresStore extends PostgresFlows implements TaskStore {
  readonly capabilities: StoreCapabilities & { cursorKey: Uint8Array; clock: DatabaseClock };
  readonly #claimed = new ClaimedTasks();
  readonly #notifications: Notifications;
  readonly #claims: Claims;
  readonly #counters: Counters;
  protected readonly flowParts: FlowParts;
  readonly #leases: Leases;
  readonly #expiries: Expiries;
  readonly #retention: Retention;
  readonly #inserts: Batcher<Insert, InsertResult>;
  readonly #settlements: Batcher<Settlement, SettleResult>;
  readonly #records: Batcher<StepRecords, StepResult>;
  readonly #queues: Batcher<string, Queue | undefined>;
  readonly #connections: Connections;
  readonly #lists: TaskLists;
  readonly #events: PostgresEvents;
  #clockTimer: Timer | undefined;
  #closed: Promise<void> | undefined;

  constructor(private readonly parts: PostgresStoreParts) {
    super();
    const { connections, clock, instance, log } = parts;
    this.#connections = connections;
    this.#events = new PostgresEvents(connections, clock, log);
    this.#lists = new TaskLists(connections, clock, (queue) => this.counts(queue, clock.now()));
    // The key belongs to the database, so that every server accepts the cursors of the others.
    const { cursorKey } = parts;
    const batchSizes = { claim: 500, deletion: 200 };
    this.capabilities = { isShared: true, batchSizes, cursorKey, clock };
    const monotonic = () => clock.monotonic();
    const counters = new Counters(connections, monotonic, log);
    this.#counters = counters;
    const changed = (queue: string) => this.#changed(queue);
    const notePending = (expiresAt: number) => this.#expiries.notePending(expiresAt);
    const takeEnds = this.#skip(takeFlowEnds);
    this.flowParts = { connections, counters, takeEnds, changed, notePending };
    this.#claims = new Claims({ connections, counters, instance, clock, log });
    this.#leases = new Leases(connections, monotonic);
    this.#expiries = new Expiries(connections, monotonic, this.#skip(expireTasks));
    this.#retention = new Retention(connections, monotonic, (statement) => this.#skip(statement));
    this.#notifications = parts.notifications({
      onWork: (queue) => this.notifyWork(queue),
      onSlotFreed: (queue) => this.#slotFreed(queue),
      onCancelled: (id) => this.notifyCancelled(id),
    });
    this.#inserts = new Batcher({
      ...batching,
      run: (list) => insertAll(connections, counters, list),
      maxBytes: maxPayloadBytes,
      bytesOf: ({ task }) => task.payload.length,
    });
    this.#queues = new Batcher({
      ...batching,
      run: (names) => acts.readQueues(connections, names),
    });
    this.#records = new Batcher({
      ...batching,
      run: (list) => this.runFlow(() => recordAll(list), list[0]!.now),
    });
    this.#settlements = new Batcher({
      ...batching,
      run: (list) => settleAll(connections, this.#claimed, list),
    });
  }

  /** Reads the clock, listens to other servers, and finishes what a killed one left. */
  async start(): Promise<void> {
    await this.#readClock();
    await this.#notifications.start();
    await this.#retention.clearDeletedQueues();
    this.#watchClock();
  }

  async listQueues(): Promise<Queue[]> {
    const found = await this.#connections.query<QueueColumns>(listQueues);
    return found.map(toQueue);
  }

  async getQueue(name: string): Promise<Queue | undefined> {
    const [found] = await this.#queues.add([name]);
    return found;
  }

  async putQueue(put: QueuePut): Promise<QueuePutResult> {
    const incarnation = this.parts.random.ulid(put.now);
    const result = await acts.putQueue(this.#connections, put, incarnation);
    if (result.kind === 'written') this.#notify([put.queue]);
    return result;
  }

  async setPaused(change: QueueAct & { paused: boolean }): Promise<boolean> {
    const isThere = await acts.setPaused(this.#connections, change);
    if (isThere) this.#notify([change.queue]);
    return isThere;
  }

  async deleteQueue(change: QueueAct): Promise<'deleted' | 'not_empty' | 'not_found'> {
    const result = await acts.deleteQueue(this.#connections, change);
    if (typeof result !== 'number') return result;
    this.#claims.forget(change.queue);
    await this.#retention.clearDeletedQueue(result, change.now);
    return 'deleted';
  }

  async counts(queue: string, now = Number.MAX_SAFE_INTEGER): Promise<QueueCounts> {
    const [row] = await this.#connections.query<{
      pending: number;
      delayed: number;
      in_flight: number;
      dead: number;
      oldest_due_at: number | null;
      waits: Record<number, number> | null;
    }>(counts, [queue, this.#counters.firstEntry(queue), now]);
    const { pending, in_flight: inFlight, dead, oldest_due_at: oldestDueAt } = row!;
    const delayed = Math.min(pending, row!.delayed);
    const kinds = Object.entries(row!.waits ?? {}).map(([no, n]) => [waitKinds[Number(no) - 1], n]);
    const waits = Object.fromEntries(kinds) as QueueCounts['waits'];
    return { pending, delayed, inFlight, dead, oldestDueAt, waits };
  }

  async insertTasks(tasks: readonly NewTask[], now: number): Promise<InsertResult[]> {
    if (tasks.some(({ flow }) => flow)) return this.runFlow(() => insertFlow(tasks, now), now);
    const results = await this.#inserts.add(tasks.map((task) => ({ task, now })));
    const queues = new Set<string>();
    results.forEach((result) => {
      if (result.kind !== 'stored') return;
      this.#notePending(result.task);
      queues.add(result.task.queue);
    });
    this.#counters.added(queues);
    this.#notifications.send(queues);
    for (const queue of queues) {
      const inserted = tasks.filter((task) => task.queue === queue);
      this.notifyWork(queue, new Set(inserted.map(({ handlerRef }) => handlerRef)));
    }
    return results;
  }

  async getTask(id: string): Promise<FullTask | Tombstone | undefined> {
    const [found] = await this.#connections.query<columns.FoundColumns & columns.FullColumns>(
      findWholeTasks,
      [[id]],
    );
    if (!found) return undefined;
    return found.status === null ? columns.toTombstone(found) : columns.toFullTask(found);
  }

  listTasks(query: TaskListQuery): Promise<TaskPage> {
    return this.#lists.page(query);
  }

  countTasks(query: { queue: string; filter: TaskFilter }): Promise<TaskCount> {
    return this.#lists.count(query);
  }

  async cancelTask(change: CancelTaskChange): Promise<TaskChangeResult> {
    const result = await changes.cancelTask(this.#connections, change);
    if (result.kind !== 'changed') return result;
    this.#notifications.sendCancelled(change.id);
    this.notifyCancelled(change.id);
    this.notifyEnded(result.task);
    this.#changed(result.task.queue);
    if (result.task.flow) await this.wake(change.now);
    return result;
  }

  async cancelPending(change: CancelPendingChange): Promise<string[]> {
    const cancelled = await changes.cancelPending(this.#connections, change);
    for (const id of cancelled) this.notifyEnded({ id, status: 'DEAD' });
    if (cancelled.length === 0) return cancelled;
    this.#changed(change.queue);
    await this.wake(change.now);
    return cancelled;
  }

  async updateTask(change: UpdateTaskChange): Promise<TaskChangeResult> {
    const result = await changes.updateTask(this.#connections, change);
    if (result.kind === 'changed') this.#changed(result.task.queue);
    return result;
  }

  async claimDue(request: ClaimRequest): Promise<WholeTask[]> {
    const tasks = await this.#claims.claim(request);
    if (tasks.length === 0) return tasks;
    this.#leases.taken(request.leaseExpiresAt);
    for (const task of tasks) this.#claimed.add(task);
    this.#counters.added([request.queue]);
    return tasks;
  }

  async settle(settlements: readonly Settlement[]): Promise<SettleResult[]> {
    const results = settlements.some(({ suspension, steps }) => suspension ?? steps)
      ? await Promise.all(settlements.map((each) => this.#settleOne(each)))
      : await this.#settlements.add(settlements);
    results.forEach((result, i) => {
      if (!result.task) return;
      const { task } = result;
      this.#claims.share.ended(task.queue, settlements[i]!.token);
      if (result.kind !== 'settled') return;
      this.#notePending(task);
      this.notifyEnded(task);
    });
    const { all, work, freed } = settledQueues(results);
    this.#counters.added(all);
    this.#notify(work);
    this.#notifications.sendSlotsFreed(freed);
    for (const queue of freed) this.#slotFreed(queue);
    if (this.#claimed.flowEnds > 0) {
      this.#claimed.flowEnds = 0;
      await this.wake(settlements[0]!.now);
    }
    return results;
  }

  async recordSteps(request: StepRecords): Promise<StepResult> {
    const [result] = await this.#records.add([request]);
    return result!;
  }

  async #settleOne(settlement: Settlement): Promise<SettleResult> {
    const { suspension, steps, now } = settlement;
    if (!suspension && !steps) return (await this.#settlements.add([settlement]))[0]!;
    const result = await this.runFlow(() => settleInFlow(settlement), now);
    if (result.kind === 'settled' && result.task.status !== 'PENDING') this.#claimed.flowEnds++;
    return result;
  }

  async extendLease(
    change: Parameters<TaskStore['extendLease']>[0],
  ): Promise<Task | 'lease_lost' | 'not_found'> {
    const { id, token, expiresAt, isAsync, now, progress, replaces } = change;
    const report = progress ? JSON.stringify(progress) : null;
    const end = columns.wholeMs(expiresAt);
    const values = [id, columns.withoutZeros(token), end, isAsync, now, report, replaces ?? null];
    const [moved] = await this.#connections.query<columns.TaskColumns>(extendLease, values);
    if (moved) {
      const task = columns.toTask(moved);
      this.#claims.share.extended(task.queue, token, task.lease!.expiresAt);
      this.#leases.taken(task.lease!.expiresAt);
      return task;
    }
    const [found] = await this.#connections.query<columns.FoundColumns>(findTasks, [[id]]);
    return found && found.status !== null ? 'lease_lost' : 'not_found';
  }

  endedLeases({ now, limit }: { now: number; limit: number }): Promise<WholeTask[]> {
    return this.#leases.ended({ now, limit });
  }

  async expireTasks({ now, limit }: { now: number; limit: number }): Promise<Task[]> {
    const found = await this.#expiries.expire({ now, limit, error: expiredError(now) });
    const queues = new Set(found.map(({ queue }) => queue));
    this.#counters.added(queues);
    this.#notify(queues);
    const tasks = found.map(columns.toTask);
    for (const task of tasks) this.notifyEnded(task);
    if (tasks.some(({ flow }) => flow)) await this.wake(now);
    return tasks;
  }

  async nextEventAt(): Promise<{
    dueByQueue: ReadonlyMap<string, number>;
    upkeepAt: number | undefined;
  }> {
    const now = this.parts.clock.now();
    const [due, expiry, leaseEnd] = await Promise.all([
      this.#connections.query<{ name: string; due_at: number }>(nextDue),
      this.#expiries.next(now),
      this.#leases.nextEnd(),
    ]);
    const dueByQueue = new Map(due.map((row) => [row.name, row.due_at]));
    const upkeepAt = Math.min(expiry ?? Infinity, leaseEnd ?? Infinity);
    return { dueByQueue, upkeepAt: upkeepAt === Infinity ? undefined : upkeepAt };
  }

  async groupIsBusy({ queue, groupKey, id, maxPerGroup }: GroupQuery): Promise<boolean> {
    const values = [queue, groupKey, maxPerGroup || id];
    const query = maxPerGroup ? groupIsFull : groupIsBusy;
    const [row] = await this.#connections.query<{ busy: boolean }>(query, values);
    return row!.busy;
  }

  deadTasks(request: DeadTaskQuery): Promise<DeadPage> {
    return readDeadPage(this.#connections, request);
  }

  deadGroups(request: { queue: string; limit: number }): Promise<DeadGroup[]> {
    return readDeadGroups(this.#connections, request);
  }

  async actOnDead(change: DeadChange): Promise<DeadChangeResult> {
    const { action, queue, now } = change;
    const result = await actOnDead(this.#connections, this.#counters, change);
    if (result.ids.length === 0) return result;
    if (result.kind === 'done' && result.dependents > 0) await this.wake(now);
    this.#counters.added([queue]);
    if (action === 'purge') this.#retention.purgedAt(now);
    else this.#notify([queue]);
    return result;
  }

  async deleteFinished(request: Parameters<TaskStore['deleteFinished']>[0]): Promise<number> {
    const gone = await this.#retention.deleteFinished(request);
    if (gone > 0 && request.status === 'DEAD') this.#counters.added([request.queue]);
    return gone;
  }

  deleteRetained(request: { now: number; limit: number }): Promise<number> {
    return this.#retention.deleteRetained(request);
  }

  async deleteTombstones(request: { now: number; limit: number }): Promise<number> {
    await this.#events.trim(request.now);
    return this.#retention.deleteTombstones(request);
  }

  startEvents(now: number): Promise<EventPosition> {
    return this.#events.start(now);
  }

  noteEvent(event: TaskEvent): Promise<void> {
    return this.#events.add(event);
  }

  readEvents(request: { after: EventPosition; limit: number }): Promise<EventPage | 'stale'> {
    return this.#events.read(request);
  }

  override onEvents(listener: () => void): () => void {
    const stop = super.onEvents(listener);
    this.#events.watch(
      () => this.hasEventListeners,
      () => this.notifyEvents(),
    );
    return stop;
  }

  listRows(range: RowRange): Promise<Row[]> {
    return listRows(this.#connections, range);
  }

  async writeRows(batch: RowBatch): Promise<RowBatchResult> {
    const { tasks = [], audit, now } = batch;
    const result = await this.#connections.transact<RowBatchResult>(async (transaction) => {
      const written = await writeRows(transaction, batch);
      if (written.kind !== 'written') return written;
      const inserts = tasks.map((task) => ({ task, now }));
      const io = flowIo({ transaction, counters: this.#counters, now });
      const inserted = tasks.some(({ flow }) => flow)
        ? await runLater(insertFlow(tasks, now), io)
        : await insertInTransaction(transaction, this.#counters, inserts);
      if (audit) await recordAct(transaction, { ...audit, at: now });
      return { ...written, inserted };
    });
    if (result.kind !== 'written') return result;
    const stored = result.inserted.flatMap((each) => (each.kind === 'stored' ? [each.task] : []));
    for (const task of stored) this.#notePending(task);
    for (const queue of new Set(stored.map((task) => task.queue))) this.#changed(queue);
    return result;
  }

  auditPage(request: AuditQuery): Promise<AuditRecord[]> {
    return readAudit(this.#connections, request);
  }

  async probe(): Promise<void> {
    await this.#readClock();
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** This database as the source or the target of a transfer. */
  transferEnd(): Source & Target {
    return new PostgresEnd(this.#connections, this.parts.clock.now());
  }

  async #close(): Promise<void> {
    this.removeListeners();
    this.#clockTimer?.cancel();
    this.#events.close();
    await this.#notifications.close();
    await this.#claims.close();
    await this.#counters.close();
    // The other servers take over its share at once instead of after five seconds.
    await this.#connections.query(leaveClaimants, [this.parts.instance]).catch((error: unknown) => {
      this.parts.log.debug({ err: error }, 'failed to leave the list of servers');
    });
    await this.#connections.close();
  }

  #skip({ skipping, waiting }: SkippingStatement): Statement {
    return this.parts.canSkip ? skipping : waiting;
  }

  #notePending({ dueAt, expiresAt }: Task): void {
    if (dueAt !== null && expiresAt !== null) this.#expiries.notePending(expiresAt);
  }

  #changed(queue: string): void {
    this.#counters.added([queue]);
    this.#notify([queue]);
  }

  #slotFreed(queue: string): void {
    if (this.#claims.waitsForSlots(queue)) this.notifyWork(queue);
  }

  #notify(queues: Iterable<string>): void {
    this.#notifications.send(queues);
    for (const queue of queues) this.notifyWork(queue);
  }

  async #readClock(): Promise<void> {
    await this.parts.clock.measure(async () => {
      const [row] = await this.#connections.query<{ now: number; read_only: string }>(readTime);
      // A standby, or a database that was made read only.
      if (row!.read_only === 'on') throw new StorageUnavailable('PostgreSQL is read only');
      return row!.now;
    });
  }

  #watchClock(): void {
    this.#clockTimer = this.parts.clock.after(clockIntervalMs, () => {
      if (this.#closed) return;
      // On failure the last measured difference stays in use.
      const again = () => this.#watchClock();
      this.#readClock().then(again, again);
    });
  }
}
