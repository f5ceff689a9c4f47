import type { RowWriter } from '@millrace/engine';
import { type AuditAct, type AuditRecord, chainAct } from '../../core/audit.js';
import { type EndStatus, never } from '../../core/flow.js';
import type { Attempt, Tombstone, WholeTask } from '../../core/task.js';
import { removeFlowRows } from './flow-rows.js';
import { claimRow, maxStoredAttempts, toTombstone } from '../port/store-parts.js';
import { type ClaimRequest, StorageUnavailable } from '../port/task-store.js';
import {
  attemptsApart,
  decodeTask,
  encodeAttempt,
  encodeFacts,
  encodeTask,
  encodeTombstone,
  isSmall,
  isTombstone,
  showWhole,
  type StoredTask,
} from './task-codec.js';
import {
  encodeIds,
  keepKeyOfDeleted,
  releaseKey,
  TouchedGroups,
  TouchedLeases,
  TouchedListings,
} from './indexes.js';
import type { EventRecorder } from './events.js';
import type { EventDetail, TaskEvent, TaskEventType } from '../port/events.js';
import {
  attemptKey,
  auditKey,
  groupBytes,
  groupTimeKey,
  idKey,
  isGrouped,
  kinds,
  nameKey,
  queueKey,
  queueTimeKey,
  readyKey,
  timeKey,
} from './keys.js';
import {
  type Counters,
  encodeJson,
  lowerMark,
  maxFew,
  nameOf,
  type ReadyKeys,
  RecentRows,
  scheduledCount,
  type StoredQueue,
} from './queue-state.js';

/** A queue as one step sees and changes it. */
export interface StepQueue {
  stored: StoredQueue;
  counters: Counters;
  /** The counters as they were read. */
  bytes: Buffer | undefined;
  ready: ReadyKeys | undefined;
  /** Change of the number of PENDING tasks, by creation time. */
  created: Map<number, number>;
  /** Ids of tasks that SUCCEEDED in this step, by time. */
  done: Map<number, string[]>;
}

const noBytes = Buffer.alloc(0);

/**
 * The unit of work of the store: one step is one commit. It changes the rows of tasks at once, and
 * collects counters, groups and leases to write them once at the end.
 */
export class Step {
  readonly #queues = new Map<string, StepQueue | undefined>();
  readonly #groups: TouchedGroups;
  readonly #leases = new TouchedLeases();
  readonly #listings = new TouchedListings();
  /** Tasks that others may wait for and that end in this step. */
  ended = new Map<string, EndStatus>();
  endedAt = 0;
  /** When the first lease or task ends by itself that this step adds. */
  soonest = Infinity;
  /** Queues with tasks of flows that became due, and tasks of flows that died. */
  readonly woken = { queues: new Set<string>(), dead: new Set<string>() };
  /** What happened to tasks in this step, if somebody reads events. */
  readonly events: TaskEvent[] = [];

  constructor(
    readonly rows: RowWriter,
    private readonly recent: RecentTasks,
    private readonly recorder?: EventRecorder,
  ) {
    this.#groups = new TouchedGroups(rows);
  }

  queue(name: string): StepQueue | undefined {
    if (this.#queues.has(name)) return this.#queues.get(name);
    const { rows, recent } = this;
    const stored = recent.queues.decoded(rows, name)?.stored;
    const read = stored && recent.queues.takeCounters(rows, stored.number);
    if (read) read.counters.scheduled ??= scheduledCount(rows, stored.number);
    const queue = stored && {
      stored,
      ...read!,
      created: new Map<number, number>(),
      done: new Map<number, string[]>(),
    };
    this.#queues.set(name, queue);
    return queue;
  }

  queueOf(task: StoredTask): StepQueue {
    const queue = this.queue(task.row.queue);
    if (queue?.stored.number !== task.queueNumber)
      throw new Error(`The queue of the task ${task.row.id} does not exist`);
    return queue;
  }

  /** The task or tombstone with this id. `isRead`: it is not changed. */
  find(id: string, isRead = false): StoredTask | Tombstone | undefined {
    const bytes = this.rows.get(idKey(kinds.task, id));
    if (!bytes) return undefined;
    const recent = isRead ? this.recent.peek(id, bytes) : this.recent.take(id, bytes);
    const found = recent ?? decodeTask(id, bytes);
    if (isTombstone(found)) return found;
    if (this.queue(found.row.queue)?.stored.number === found.queueNumber) return found;
    // Its queue was deleted, and the task will be.
    const deletion = this.rows.get(queueKey(kinds.deletedQueue, found.queueNumber));
    return deletion && toTombstone(found.row, Number(deletion.toString()));
  }

  task(id: string): StoredTask | undefined {
    const found = this.find(id);
    return found && !isTombstone(found) ? found : undefined;
  }

  /** Writes the task. It must not change afterwards in this step. */
  store(task: StoredTask): void {
    const bytes = encodeTask(task);
    this.rows.put(idKey(kinds.task, task.row.id), bytes);
    const { lease, dueAt, updatedAt } = task.row;
    // Claimed or settled soon.
    if (lease || (dueAt !== null && dueAt <= updatedAt)) this.recent.keep(bytes, task);
  }

  /** Adds a new task to the lists of tasks by creation time. */
  list({ row, queueNumber }: StoredTask): void {
    this.#listings.add(queueNumber, row.createdAt, row.id);
  }

  /** Deletes the task and leaves a tombstone. The caller has removed its other index rows. */
  replaceByTombstone(task: StoredTask, now: number): void {
    const { id, createdAt } = task.row;
    this.#listings.remove(task.queueNumber, createdAt, id);
    if (task.payload === undefined) this.rows.remove(idKey(kinds.payload, id));
    if (task.hasResult) this.rows.remove(idKey(kinds.result, id));
    if (task.row.flow) removeFlowRows(this.rows, id, task.row.flow);
    keepKeyOfDeleted(this.rows, task.queueNumber, task.row);
    for (const number of attemptsApart(task)) this.rows.remove(attemptKey(id, number));
    this.rows.put(idKey(kinds.task, id), encodeTombstone(toTombstone(task.row, now)));
    this.rows.put(timeKey(kinds.tombstone, now, id), noBytes);
  }

  /** Adds to the history. A small last attempt is stored in the row of the task. */
  addAttempt(task: StoredTask, attempt: Attempt): void {
    const putApart = (each: Attempt) => {
      this.rows.put(attemptKey(task.row.id, task.attemptsApart++), encodeAttempt(each));
    };
    if (task.lastAttempt) putApart(task.lastAttempt);
    task.lastAttempt = isSmall(attempt) ? attempt : null;
    if (!task.lastAttempt) putApart(attempt);
    const all = task.attemptsApart + (task.lastAttempt ? 1 : 0);
    if (all > maxStoredAttempts) this.rows.remove(attemptKey(task.row.id, all - maxStoredAttempts));
  }

  /** Adds the index rows of a PENDING task, and counts it. */
  enter(task: StoredTask, now: number): void {
    const queue = this.queueOf(task);
    const { row } = task;
    const { number } = queue.stored;
    const group = groupBytes(row.groupKey);
    this.#countPending(queue, task, 1);
    if (row.expiresAt !== null) {
      this.rows.put(timeKey(kinds.expiry, row.expiresAt, row.id), noBytes);
      this.soonest = Math.min(this.soonest, row.expiresAt);
    }
    if (row.started && isGrouped(group)) {
      this.rows.put(groupTimeKey(kinds.retried, number, group, row.dueAt!, row.id), noBytes);
      this.group(queue, group).retried++;
    }
    if (row.dueAt! <= now) return this.ready(queue, row.priority, group, row.dueAt!, row.id);
    const value = Buffer.allocUnsafe(1 + group.length);
    value[0] = row.priority;
    value.set(group, 1);
    this.rows.put(queueTimeKey(kinds.scheduled, number, row.dueAt!, row.id), value);
    const { counters } = queue;
    counters.scheduled!++;
    counters.nextDue = Math.min(counters.nextDue ?? Infinity, row.dueAt!);
  }

  /** Makes a due task ready, or adds it to the line of its FIFO group. */
  ready(queue: StepQueue, priority: number, group: Buffer, due: number, id: string): void {
    const { number } = queue.stored;
    if (!queue.counters.fifo || !isGrouped(group)) {
      if (!isGrouped(group)) lowerMark(queue.counters.floors, priority, due, id);
      queue.counters.lanes |= 1 << priority;
      const key = readyKey(number, priority, group, due, id);
      this.rows.put(key, noBytes);
      if (queue.ready?.set(nameOf(key), key).size === maxFew) queue.ready = undefined;
      return;
    }
    this.rows.put(groupTimeKey(kinds.lined, number, group, due, id), Buffer.of(priority));
    this.group(queue, group);
  }

  /** Removes the index rows of a PENDING task; `isReady`: it has no scheduled row. */
  leave(task: StoredTask, { isReady }: { isReady: boolean }): void {
    const queue = this.queueOf(task);
    const { row } = task;
    const { number } = queue.stored;
    const { fifo, converting } = queue.counters;
    const group = groupBytes(row.groupKey);
    const due = row.dueAt!;
    this.#countPending(queue, task, -1);
    if (row.expiresAt !== null) {
      this.rows.remove(timeKey(kinds.expiry, row.expiresAt, row.id));
    }
    const scheduledKey = queueTimeKey(kinds.scheduled, number, due, row.id);
    if (!isReady && this.rows.get(scheduledKey)) {
      this.rows.remove(scheduledKey);
      queue.counters.scheduled!--;
    }
    const isInLine = isGrouped(group) && (fifo || converting !== null);
    if (!isInLine || converting !== null) {
      const key = readyKey(number, row.priority, group, due, row.id);
      this.rows.remove(key);
      queue.ready?.delete(nameOf(key));
    }
    if (!isGrouped(group)) return;
    const state = this.group(queue, group);
    if (isInLine) this.rows.remove(groupTimeKey(kinds.lined, number, group, due, row.id));
    if (!row.started) return;
    this.rows.remove(groupTimeKey(kinds.retried, number, group, due, row.id));
    state.retried--;
  }

  /** Takes a ready task under a new lease. */
  claim(task: StoredTask, request: ClaimRequest): WholeTask {
    const { now, nodeId, leaseExpiresAt } = request;
    this.leave(task, { isReady: true });
    claimRow(task.row, { token: request.newToken(), now, nodeId, leaseExpiresAt });
    this.lease(task);
    this.store(task);
    this.note('started', task, now);
    return showWhole(this.rows, task);
  }

  /** Adds the lease of a claimed task to the index rows. */
  lease(task: StoredTask): void {
    const queue = this.queueOf(task);
    queue.counters.inFlight++;
    this.#addLease(task);
    const group = groupBytes(task.row.groupKey);
    if (isGrouped(group)) this.group(queue, group).inFlight++;
  }

  /** Removes the lease of a task that is about to be settled. */
  removeLease(task: StoredTask): void {
    const queue = this.queueOf(task);
    queue.counters.inFlight--;
    this.#leases.remove(task.row.lease!.expiresAt, task.leaseList, task.row.id);
    const group = groupBytes(task.row.groupKey);
    if (isGrouped(group)) this.group(queue, group).inFlight--;
  }

  moveLease(task: StoredTask, expiresAt: number): void {
    const lease = task.row.lease!;
    this.#leases.remove(lease.expiresAt, task.leaseList, task.row.id);
    lease.expiresAt = expiresAt;
    this.#addLease(task);
  }

  #addLease(task: StoredTask): void {
    const { id, lease } = task.row;
    task.leaseList = this.#leases.add(lease!.expiresAt, id);
    this.soonest = Math.min(this.soonest, lease!.expiresAt);
  }

  succeeded(task: StoredTask): void {
    const { done } = this.queueOf(task);
    const at = task.row.completedAt!;
    const retained = retainedKey(task);
    const ids = done.get(at);
    if (retained) this.rows.put(retained, noBytes);
    else if (ids) ids.push(task.row.id);
    else done.set(at, [task.row.id]);
    releaseKey(this.rows, task.queueNumber, task.row);
    this.#endFlow(task.row, 'SUCCEEDED', at);
  }

  died(task: StoredTask): void {
    const { row } = task;
    const { stored, counters } = this.queueOf(task);
    counters.dead++;
    const key = queueTimeKey(kinds.dead, stored.number, row.deadAt!, row.id);
    this.rows.put(key, encodeFacts(row));
    const retained = retainedKey(task);
    if (retained) this.rows.put(retained, noBytes);
    releaseKey(this.rows, stored.number, row);
    this.#endFlow(row, 'DEAD', row.deadAt!);
  }

  #endFlow({ id, flow }: StoredTask['row'], status: EndStatus, at: number): void {
    if (!flow?.hasWaiters) return;
    this.ended.set(id, status);
    this.endedAt = Math.max(this.endedAt, at);
  }

  leaveDead(task: StoredTask): void {
    const { row } = task;
    const { stored, counters } = this.queueOf(task);
    counters.dead--;
    this.rows.remove(queueTimeKey(kinds.dead, stored.number, row.deadAt!, row.id));
    const retained = retainedKey(task);
    if (retained) this.rows.remove(retained);
  }

  /** Notes what happened to a task. */
  note(type: TaskEventType, { row }: StoredTask, at: number, detail: EventDetail = {}): void {
    if (!this.recorder || at >= this.recorder.until) return;
    const { queue, id: taskId, handlerRef, attempt } = row;
    this.events.push({ type, at, queue, taskId, handlerRef, attempt, detail });
  }

  /** Adds to the audit log. */
  record(act: AuditAct): void {
    const lastKey = nameKey(kinds.meta, 'audit');
    const last = this.rows.get(lastKey);
    const record = chainAct(
      last && (JSON.parse(last.toString()) as Pick<AuditRecord, 'seq' | 'hash'>),
      act,
    );
    this.rows.put(auditKey(record.seq), encodeJson(record));
    this.rows.put(lastKey, encodeJson({ seq: record.seq, hash: record.hash }));
  }

  group(queue: StepQueue, group: Buffer) {
    return this.#groups.touch(queue, group);
  }

  /** Makes the heads of the groups touched so far ready. */
  writeGroups(): void {
    this.#groups.write();
  }

  /** Drops a queue that this step deleted. */
  drop(name: string): void {
    this.#queues.set(name, undefined);
  }

  /** Writes what was collected. The step must not be used afterwards. */
  finish(): void {
    if (this.events.length > 0) this.recorder!.write(this.rows, this.events);
    this.writeGroups();
    this.#leases.write(this.rows);
    const listed = this.#listings.write(this.rows);
    for (const queue of this.#queues.values()) {
      if (!queue) continue;
      const change = listed.get(queue.stored.number);
      if (change) queue.counters.listed = (queue.counters.listed ?? 0) + change;
      this.#writeQueue(queue);
    }
  }

  #writeQueue({ stored, counters, bytes: before, ready, created, done }: StepQueue): void {
    const bytes = encodeJson(counters);
    // Some steps change nothing. They may have moved a ready row, and be rolled back unnoticed.
    if (!before?.equals(bytes)) {
      this.rows.put(queueKey(kinds.counters, stored.number), bytes);
      this.recent.queues.keepCounters(stored.number, { bytes, counters, ready });
    }
    for (const [at, delta] of created) {
      if (delta === 0) continue;
      const row = queueTimeKey(kinds.created, stored.number, at);
      const count = (this.rows.get(row)?.readUInt32BE(0) ?? 0) + delta;
      if (count === 0) this.rows.remove(row);
      else this.rows.put(row, encodeCount(count));
    }
    for (const [at, ids] of done) this.putDone(stored.number, at, ids);
  }

  putDone(queue: number, at: number, ids: readonly string[]): void {
    this.rows.put(queueTimeKey(kinds.done, queue, at, ids[0]), encodeIds(ids));
  }

  #countPending({ counters, created }: StepQueue, task: StoredTask, delta: number): void {
    const { createdAt, flow } = task.row;
    counters.pending += delta;
    created.set(createdAt, (created.get(createdAt) ?? 0) + delta);
    if (!flow?.wait) return;
    const { kind } = flow.wait;
    counters.waits = { ...counters.waits, [kind]: (counters.waits?.[kind] ?? 0) + delta };
    if (task.row.dueAt === never) counters.parked = (counters.parked ?? 0) + delta;
  }
}

/** Undefined: the retention of the queue counts. */
function retainedKey({ row }: StoredTask): Buffer | undefined {
  const retainMs = row.options?.retainMs;
  if (retainMs === undefined) return undefined;
  return timeKey(kinds.retained, (row.completedAt ?? row.deadAt)! + retainMs, row.id);
}

function encodeCount(count: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32BE(count, 0);
  return bytes;
}

const maxTasks = 8_192;

interface Cached {
  bytes: Buffer;
  task: StoredTask;
}

/**
 * Cache of decoded tasks by their stored bytes: most tasks are claimed soon after their submit and
 * settled soon after their claim, and need not be decoded again.
 */
export class RecentTasks {
  /**
   * Two generations, the older of which is dropped as a whole: the oldest entry of a map is slow to
   * find after many deletions.
   */
  #tasks = new Map<string, Cached>();
  readonly queues = new RecentRows();
  #older = new Map<string, Cached>();

  /** The caller must not change the task any more. */
  keep(bytes: Buffer, task: StoredTask): void {
    if (this.#tasks.size >= maxTasks / 2) {
      this.#older = this.#tasks;
      this.#tasks = new Map();
    }
    this.#tasks.set(task.row.id, { bytes, task });
  }

  /** Removes and returns the task that was stored as these bytes. */
  take(id: string, bytes: Buffer): StoredTask | undefined {
    const task = this.peek(id, bytes);
    if (!this.#tasks.delete(id)) this.#older.delete(id);
    return task;
  }

  /** The task that was stored as these bytes, not to be changed. */
  peek(id: string, bytes: Buffer): StoredTask | undefined {
    const cached = this.#tasks.get(id) ?? this.#older.get(id);
    return cached?.bytes.equals(bytes) ? cached.task : undefined;
  }
}

/** Runs a function as one commit; resolves when it is on disk. */
export type Transact = <Result>(run: (step: Step) => Result) => Promise<Result>;

/** The handlers that get work, by queue. */
export type Work = ReadonlyMap<string, ReadonlySet<string>>;

interface Batch<Item, Result> {
  calls: (readonly Item[])[];
  itemCount: number;
  /** Queues and handlers whose listeners have been notified. */
  notified: Map<string, Set<string>>;
  outcome: Promise<Result[][]>;
}

export interface BatcherOptions<Item, Result> {
  transact: Transact;
  maxItems: number;
  run: (step: Step, item: Item) => Result;
  /** Called once per batch and handler, when the writer has the batch in its queue. */
  notify?: (queue: string, handlers: ReadonlySet<string>) => void;
}

/**
 * Group commit: calls that arrive before the writer runs the first of them share one step. A step
 * reads and writes the counters of its queues, which is most of the cost of a call with one task.
 */
export class Batcher<Item, Result> {
  #open: Batch<Item, Result> | undefined;

  constructor(private readonly options: BatcherOptions<Item, Result>) {}

  async add(items: readonly Item[], work: Work = new Map()): Promise<Result[]> {
    if (items.length === 0) return [];
    const batch = this.#batchFor(items.length);
    const index = batch.calls.push(items) - 1;
    batch.itemCount += items.length;
    for (const [queue, handlers] of work) this.#notify(batch, queue, handlers);
    try {
      return (await batch.outcome)[index]!;
    } catch (error) {
      if (batch.calls.length === 1 || error instanceof StorageUnavailable) throw error;
      // One call of the batch failed: run each alone, so that the others succeed.
      const results = this.options.transact((step) => this.#run(step, items));
      for (const [queue, handlers] of work) this.options.notify?.(queue, handlers);
      return results;
    }
  }

  #batchFor(itemCount: number): Batch<Item, Result> {
    const open = this.#open;
    if (open && open.itemCount + itemCount <= this.options.maxItems) return open;
    const calls: (readonly Item[])[] = [];
    const outcome = this.options.transact((step) => {
      // The writer may run this again, so nothing may join the batch from here on.
      if (this.#open === batch) this.#open = undefined;
      return calls.map((items) => this.#run(step, items));
    });
    const batch: Batch<Item, Result> = { calls, itemCount: 0, notified: new Map(), outcome };
    this.#open = batch;
    return batch;
  }

  #notify(batch: Batch<Item, Result>, queue: string, handlers: ReadonlySet<string>): void {
    const notified = batch.notified.get(queue) ?? new Set();
    const more = new Set([...handlers].filter((handler) => !notified.has(handler)));
    if (more.size === 0) return;
    for (const handler of more) notified.add(handler);
    batch.notified.set(queue, notified);
    this.options.notify?.(queue, more);
  }

  #run(step: Step, items: readonly Item[]): Result[] {
    return items.map((item) => this.options.run(step, item));
  }
}
