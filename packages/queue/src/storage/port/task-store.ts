import type { Clock } from '@millrace/kit/clock';
import type { AuditAct, AuditRecord } from '../../core/audit.js';
import type { Queue, QueueConfig, QueueCounts } from '../../core/queue.js';
import type {
  Attempt,
  FullTask,
  LastError,
  Progress,
  Task,
  TaskOptions,
  Tombstone,
  WholeTask,
} from '../../core/task.js';
import type { Verdict } from '../../core/outcome.js';
import type { Suspension, TaskFlow, StoredStep } from '../../core/flow.js';
import type { FlowStore } from './flow-store.js';
import type { EventLog } from './events.js';
import type { TaskChanging } from './task-changes.js';
import type { TaskListing } from './task-list.js';

/** `handlers`: those that may have work in the queue; absent: any. */
export type WorkListener = (queue: string, handlers?: ReadonlySet<string>) => void;

/**
 * The storage port of the queue. Each call is atomic, durable when it resolves, and safe to
 * repeat. Time is passed as `now`. A store contains no policy: retry delays, dead-lettering and
 * retention are decided by the caller. A store that cannot reach its database throws
 * `StorageUnavailable`.
 */
export interface TaskStore extends TaskListing, TaskChanging, FlowStore, Rows, EventLog {
  readonly capabilities: StoreCapabilities;

  // Queues

  listQueues(): Promise<Queue[]>;
  getQueue(name: string): Promise<Queue | undefined>;
  /** Creates a queue or replaces its config. Does not change `paused`. */
  putQueue(put: QueuePut): Promise<QueuePutResult>;
  /** False if the queue does not exist. A repeated pause only adds to the audit log. */
  setPaused(change: { queue: string; paused: boolean; now: number; by: string }): Promise<boolean>;
  /** Deletes a queue without PENDING, IN_FLIGHT and DEAD tasks, and its succeeded tasks. */
  deleteQueue(change: {
    queue: string;
    now: number;
    by: string;
  }): Promise<'deleted' | 'not_empty' | 'not_found'>;
  /**
   * From maintained counters: costs the same with ten tasks and with ten million. `delayed` is as
   * of `now`; without it, 0.
   */
  counts(queue: string, now?: number): Promise<QueueCounts>;

  // Tasks

  /**
   * Stores all tasks in one commit; a result for each, in order. Checks for an unknown queue
   * first, then for a used id, then for a full queue.
   */
  insertTasks(tasks: readonly NewTask[], now: number): Promise<InsertResult[]>;
  getTask(id: string): Promise<FullTask | Tombstone | undefined>;
  /**
   * Subscribes to tasks that end through this store object; the ends that other servers write are
   * not among them. Returns the unsubscribe function.
   */
  onEnded(listener: (id: string) => void): () => void;

  // Delivery

  /**
   * Claims up to `limit` due tasks of a queue that is not paused, each under a new lease: higher
   * priority first, then group keys round-robin, within a group by due time and id; tasks without
   * a key are one more group. Skips expired tasks. Increments `attempt`. Over all servers, at most
   * `maxInFlight` tasks of the queue are in flight, and at most `dispatchPerSecond` (0: no limit)
   * start in a second. Takes nothing from a queue that is not the `expected` one,
   * and throws `QueueChanged` if a task may be due there.
   */
  claimDue(request: ClaimRequest): Promise<WholeTask[]>;
  /** Settles claims, each if its lease token is still valid; a result for each, in order. */
  settle(settlements: readonly Settlement[]): Promise<SettleResult[]>;
  /** Records steps under the lease of their task. */
  recordSteps(request: StepRecords): Promise<StepResult>;
  /** Moves the expiry of a lease that is still held. The lease of the returned task has the result. */
  extendLease(change: {
    id: string;
    token: string;
    expiresAt: number;
    /** A lease that still expires at this time may become shorter; any other only longer. */
    replaces?: number | undefined;
    isAsync: boolean;
    now: number;
    /** Replaces the task's progress, if given. */
    progress?: Progress | undefined;
  }): Promise<Task | 'lease_lost' | 'not_found'>;
  /** IN_FLIGHT tasks with an expired lease, oldest expiry first, of all servers. */
  endedLeases(request: { now: number; limit: number }): Promise<WholeTask[]>;
  /** Makes PENDING tasks whose `expiresAt` has passed DEAD (EXPIRED), also in paused queues. */
  expireTasks(request: { now: number; limit: number }): Promise<Task[]>;
  /**
   * Times of the next events: a PENDING task of an unpaused queue falls due, a lease or a task
   * expires. Undefined: none. Overdue events have times in the past. `mayBeEarly`: until `upkeepAt`
   * nothing expires, but perhaps nothing does then either.
   */
  nextEventAt(request?: { mayBeEarly: boolean }): Promise<{
    dueByQueue: ReadonlyMap<string, number>;
    upkeepAt: number | undefined;
  }>;
  /**
   * Is another task of this FIFO group in flight or waiting to be retried? With `maxPerGroup`: are
   * as many tasks of the group in flight?
   */
  groupIsBusy(request: GroupQuery): Promise<boolean>;
  /**
   * Subscribes to hints that a queue may have new work, also from another server. A hint may be
   * false, and a lost hint only costs time. It may come before the call that adds the work
   * resolves; a claim after the hint finds that work. Returns the unsubscribe function.
   */
  onWork(listener: WorkListener): () => void;

  // Dead letters

  deadTasks(request: DeadTaskQuery): Promise<DeadPage>;
  deadGroups(request: { queue: string; limit: number }): Promise<DeadGroup[]>;
  /**
   * Redrives or purges the given tasks that are DEAD in this queue. A redrive requeues them: attempt
   * 0, history retained, `expiresAt` cleared, due at the time given for each. A purge deletes them.
   * A `row` is written in the same commit; if it has another revision, nothing is changed.
   */
  actOnDead(change: DeadChange): Promise<DeadChangeResult>;

  // Upkeep

  /** Deletes SUCCEEDED or DEAD tasks that ended before the time given. Returns how many. */
  deleteFinished(request: {
    queue: string;
    status: 'SUCCEEDED' | 'DEAD';
    endedBefore: number;
    now: number;
    limit: number;
  }): Promise<number>;
  /** Deletes finished tasks with a retention of their own that is over. Returns how many. */
  deleteRetained(request: { now: number; limit: number }): Promise<number>;
  /** Deletes tombstones older than a day. Returns how many. */
  deleteTombstones(request: { now: number; limit: number }): Promise<number>;

  /**
   * The bytes of a backup file of one moment, or of an increment on an earlier one; absent: the
   * database has tools of its own.
   */
  backup?(sinceSeq?: number): Promise<AsyncIterable<Uint8Array>>;

  auditPage(request: AuditQuery): Promise<AuditRecord[]>;

  /** Resolves when the database answers. */
  probe(): Promise<void>;
  close(): Promise<void>;
}

/** Optional guarantees of a store. */
export interface StoreCapabilities {
  /**
   * A claim made while a settlement is being written runs after it, so the capacity that the
   * settlement frees can be claimed at once.
   */
  readonly claimsFollowSettlements?: boolean;
  /** Preferred batch sizes of an out-of-process store. */
  readonly batchSizes?: { readonly claim: number; readonly deletion: number };
  /** Several servers may share the store. */
  readonly isShared?: boolean;
  /** Times are given in the time of this clock; absent: of the machine. */
  readonly clock?: Clock;
  /** Signs cursors when several servers share the store. */
  readonly cursorKey?: Uint8Array;
}

/** How long the id of a deleted task is remembered. */
export const tombstoneMs = 86_400_000;

/** The database does not respond. The call may or may not have taken effect: retry it. */
export class StorageUnavailable extends Error {
  override readonly name = 'StorageUnavailable';
}

/** The queue was deleted, paused or configured since it was read: read it again. */
export class QueueChanged extends Error {
  override readonly name = 'QueueChanged';
}

export interface QueuePut {
  queue: string;
  config: QueueConfig;
  /** Write only if the queue still has this version; 0: only if there is no such queue. */
  ifVersion?: number | undefined;
  now: number;
  by: string;
}

export type QueuePutResult =
  | { kind: 'written'; queue: Queue; created: boolean }
  | { kind: 'version_mismatch'; queue: Queue | undefined };

export interface NewTask {
  id: string;
  queue: string;
  handlerRef: string;
  payload: Uint8Array;
  payloadContentType: string;
  headers: Readonly<Record<string, string>>;
  priority: number;
  groupKey: string | null;
  dueAt: number;
  expiresAt: number | null;
  submittedBy: string;
  /** At most one task of the queue holds a key. */
  uniqueKey?: string | null | undefined;
  /** The key is held until this time; null: until the task ends. */
  uniqueUntil?: number | null | undefined;
  /** The queue may hold this many PENDING tasks; 0: any number. */
  maxPending: number;
  options?: TaskOptions | undefined;
  /**
   * If the key is held by a PENDING task, that task gets this payload and due time instead; if its
   * holder has started, this task takes the key.
   */
  isDebounced?: boolean | undefined;
  /** Dependencies, parent and flow, if the task has any. */
  flow?: TaskFlow | undefined;
  /** Must be the token of the parent's lease, if given. */
  parentToken?: string | undefined;
}

export type InsertResult =
  | { kind: 'stored'; task: Task }
  /** The id was used before, by a task of this or another queue, or this task holds the key. */
  | { kind: 'existing'; task: Task }
  | { kind: 'purged'; tombstone: Tombstone }
  | { kind: 'queue_not_found' }
  | { kind: 'queue_full' }
  | { kind: 'unknown_dependency'; id: string }
  | { kind: 'unknown_parent' | 'parent_ended' | 'parent_lease_lost' };

export interface ClaimRequest {
  queue: string;
  /** As last read. Claim only if it is not paused and still has this config; absent: any config. */
  expected?: Pick<Queue, 'incarnation' | 'version'> | undefined;
  limit: number;
  now: number;
  nodeId: string;
  leaseExpiresAt: number;
  /** One unguessable token for each task that may be claimed. */
  newToken: () => string;
  maxInFlight: number;
  /** Sliding window of one second, with a resolution of 20 ms. */
  dispatchPerSecond: number;
  /**
   * FIFO: only the head of a group may be claimed, by due time and id whatever its priority, and
   * none while another task of the group is in flight. A started task that waits for a retry is
   * the head. Tasks without a group key are not ordered.
   */
  fifoGroups: boolean;
  /** Only tasks for these handlers; absent: any. */
  handlers?: readonly string[] | undefined;
  excludedHandlers?: readonly string[] | undefined;
  /** Only tasks all of whose labels are among these; absent: any. */
  labels?: readonly string[] | undefined;
  /** Tasks of one group in flight, at most; absent or 0: any number. */
  maxPerGroup?: number | undefined;
  /** A client waits for the result: claim without delay. */
  isImmediate?: boolean | undefined;
}

export interface GroupQuery {
  queue: string;
  groupKey: string;
  id: string;
  maxPerGroup?: number | undefined;
}

/** How a claim ends. */
export interface Settlement {
  id: string;
  token: string;
  now: number;
  verdict: Verdict;
  /** For the history. */
  attempt: Attempt;
  /** Replaces the task's last error, if given. */
  error?: LastError | undefined;
  /** JSON text that is kept with a task that succeeded. */
  result?: string | undefined;
  /** The result was too large to keep. */
  resultDropped?: boolean | undefined;
  /** What the task waits for, with the verdict `suspended`; the store fills in the verdict. */
  suspension?: Suspension | undefined;
  /** Recorded in the same commit. */
  steps?: readonly NewStep[] | undefined;
  maxSteps?: number | undefined;
  /** Only if the lease expired by this time: it may have been extended on another server. */
  expiredBy?: number | undefined;
}

export interface NewStep extends Pick<StoredStep, 'name' | 'result' | 'error' | 'startedAt'> {
  /** Ids of signals that are read with this step. */
  consumes: readonly string[];
}

export interface StepRecords {
  id: string;
  token: string;
  now: number;
  steps: readonly NewStep[];
  maxSteps: number;
  /** Whoever settles the task decides whether its lease is still held. */
  mayBeLate?: boolean;
}

export type StepResult =
  | { kind: 'done'; steps: { step: StoredStep; isRecorded: boolean }[] }
  | { kind: 'lease_lost' | 'not_found' | 'too_many' | 'too_large' };

export type SettleResult =
  | { kind: 'settled'; task: Task }
  /** This claim was settled before, with this kind of verdict. */
  | { kind: 'repeated'; task: Task; verdict: Verdict['kind'] }
  /** The lease belongs to another claim, or the task does not exist. */
  | { kind: 'lease_lost'; task: Task | undefined }
  /** Its steps cannot be recorded, and it is not settled. */
  | { kind: 'too_many_steps' | 'steps_too_large'; task: Task };

export interface DeadFilter {
  errorType?: string | undefined;
  handlerRef?: string | undefined;
  httpStatus?: number | undefined;
  /** Inclusive. */
  diedFrom?: number | undefined;
  /** Exclusive. */
  diedBefore?: number | undefined;
}

export interface DeadTaskQuery {
  queue: string;
  filter: DeadFilter;
  order: 'newest_first' | 'oldest_first';
  /** Position of the last task of the previous page. */
  after?: DeadTaskPosition | undefined;
  limit: number;
  /** Maximum size of a page in bytes; a page has at least one task. */
  maxBytes: number;
}

export interface DeadTaskPosition {
  deadAt: number;
  id: string;
}

export interface DeadPage {
  tasks: WholeTask[];
  /** Start of the next page; undefined on the last one. */
  next: DeadTaskPosition | undefined;
}

export interface DeadGroup {
  errorType: string | null;
  handlerRef: string;
  httpStatus: number | null;
  count: number;
  firstSeenAt: number;
  lastSeenAt: number;
  sampleId: string;
}

export interface DeadChange {
  action: 'redrive' | 'purge';
  queue: string;
  ids: readonly string[];
  /** Skips tasks that died, or died again, after this time. */
  diedBy: number;
  now: number;
  by: string;
  /** The request's selector as sent, for the audit log. */
  selector: Readonly<Record<string, unknown>>;
  /** Redrive: when the n-th of `ids` is due; absent: now. */
  dueAt?: ((index: number) => number) | undefined;
  /** Redrive: also the tasks that died of these; absent: yes. */
  withDependents?: boolean | undefined;
  /** Redrive: drop this step and those after it; null: all; absent: none. */
  fromStep?: string | null | undefined;
  /**
   * The job that this is a step of; its new value is given how many tasks changed. Without one the
   * change is audited; of a job, its start and its end are.
   */
  row?: (RowKey & { ifRevision: number; value: (count: number) => RowValue }) | undefined;
}

/** The ids of the tasks that were changed, in the order given, and how many came back with them. */
export type DeadChangeResult =
  | { kind: 'done'; ids: string[]; dependents: number; row: Row | undefined }
  | { kind: 'conflict'; ids: [] };

export type { AuditRecord, Verdict };

export interface AuditQuery {
  /** Only records of these queues; undefined: all. */
  allowed?: ((queue: string) => boolean) | undefined;
  queue?: string | undefined;
  /** Inclusive. */
  from?: number | undefined;
  /** Exclusive. */
  to?: number | undefined;
  /** Newest first, below this number. */
  beforeSeq?: number | undefined;
  limit: number;
}

/**
 * Rows are small JSON documents that belong to a queue and are deleted with it. What is kept in
 * them is written once, for all stores. Keys sort by their code points.
 */
export interface Rows {
  /** By queue and key. */
  listRows(range: RowRange): Promise<Row[]>;
  /** Writes rows, and in the same commit stores tasks and adds to the audit log: all or nothing. */
  writeRows(batch: RowBatch): Promise<RowBatchResult>;
}

export const rowTables = ['schedule', 'job', 'history', 'totals', 'worker', 'breaker'] as const;
export type RowTable = (typeof rowTables)[number];

export interface RowKey {
  table: RowTable;
  queue: string;
  key: string;
}

export type RowValue = object;

export interface Row extends RowKey {
  /** Small, and written often. */
  value: RowValue;
  /** May be large, and is written rarely; only in lists with bodies. */
  body?: RowValue | undefined;
  /** 1 for a new row, one more with each write. */
  revision: number;
  createdAt: number;
}

export interface RowRange extends Partial<RowKey> {
  table: RowTable;
  /** Inclusive. */
  from?: string | undefined;
  /** Exclusive. */
  before?: string | undefined;
  /** The last keys first; needs a queue. */
  isReverse?: boolean | undefined;
  limit?: number | undefined;
  hasBodies?: boolean | undefined;
}

export interface RowPut extends RowKey {
  /** Write only if the row still has this revision; 0: only if there is none; absent: always. */
  ifRevision?: number | undefined;
  /** Undefined leaves it as it is. */
  body?: RowValue | undefined;
  /** Or a function of the value before, which returns undefined to write nothing. */
  value: RowValue | ((before: RowValue | undefined) => RowValue | undefined);
}

/** Removes the rows from a key on and before another. */
export interface RowRemoval {
  table: RowTable;
  queue: string;
  from: string;
  before: string;
}

export interface RowBatch {
  puts?: readonly RowPut[] | undefined;
  removals?: readonly RowRemoval[] | undefined;
  tasks?: readonly NewTask[] | undefined;
  audit?: Omit<AuditAct, 'at'> | undefined;
  now: number;
}

export type RowBatchResult =
  /** `rows`: those that were put. Rows of queues that do not exist are not written. */
  | { kind: 'written'; rows: Row[]; removed: number; inserted: InsertResult[] }
  | { kind: 'conflict' }
  /** A row with `ifRevision` has no queue. */
  | { kind: 'queue_not_found' };

/** The first key after this one, and after it alone. */
export function keyAfter(key: string): string {
  return `${key}\u0001`;
}

export function removalOf({ table, queue, key }: RowKey): RowRemoval {
  return { table, queue, from: key, before: keyAfter(key) };
}

/** The row after a write; undefined: there is nothing to write. */
export function nextRow(put: RowPut, before: Row | undefined, now: number): Row | undefined {
  const { table, queue, key, body } = put;
  const value = typeof put.value === 'function' ? put.value(before?.value) : put.value;
  if (!value) return undefined;
  const revision = (before?.revision ?? 0) + 1;
  return { table, queue, key, value, body, revision, createdAt: before?.createdAt ?? now };
}

export function hasConflict({ ifRevision }: RowPut, before: Row | undefined): boolean {
  return ifRevision !== undefined && ifRevision !== (before?.revision ?? 0);
}
