import type { AuditRecord } from '../core/audit.js';
import type { Queue, QueueConfig, QueueCounts } from '../core/queue.js';
import type { Attempt, LastError, Task, Tombstone, WholeTask } from '../core/task.js';
import type { Verdict } from '../core/verdict.js';

/**
 * What the queue asks of a database, in the queue's own words. Each call is one atomic step that is
 * on disk when it resolves, and safe to repeat; time arrives as `now`; a store decides nothing:
 * what a retry waits, when a task is given up and how long it is kept are told to it.
 *
 * A store that cannot reach its database throws `StorageUnavailable`.
 */
export interface TaskStore {
  readonly capabilities: StoreCapabilities;

  // Queues

  listQueues(): Promise<Queue[]>;
  getQueue(name: string): Promise<Queue | undefined>;
  /** Makes or replaces a queue's config. The pause stays as it is. */
  putQueue(put: QueuePut): Promise<QueuePutResult>;
  /** False when there is no such queue. A repeated pause changes nothing but the audit log. */
  setPaused(change: { queue: string; paused: boolean; now: number; by: string }): Promise<boolean>;
  /** Only a queue without PENDING, IN_FLIGHT and DEAD tasks goes; its succeeded ones go with it. */
  deleteQueue(change: {
    queue: string;
    now: number;
    by: string;
  }): Promise<'deleted' | 'not_empty' | 'not_found'>;
  /** From maintained counters: costs the same with ten tasks and with ten million. */
  counts(queue: string): Promise<QueueCounts>;

  // Tasks

  /**
   * Stores all tasks in one commit; a result for each, in order. An unknown queue is told first,
   * then an id that was used before, then a full queue.
   */
  insertTasks(tasks: readonly NewTask[], now: number): Promise<InsertResult[]>;
  getTask(id: string): Promise<WholeTask | Tombstone | undefined>;

  // Delivery

  /**
   * Takes up to `limit` due tasks of a queue that is not paused, each under a new lease: higher
   * priority first, then the group keys in turn, within a group by due time and id; tasks without
   * a key are a group like any other. Passes over those whose expiry has come. Raises `attempt`. Never lets more than `maxInFlight` tasks of the queue be in flight over all servers,
   * nor more than `dispatchPerSecond` (0: any number) start in a second.
   */
  claimDue(ask: ClaimAsk): Promise<WholeTask[]>;
  /** Ends claims, each if its lease token is still the task's; a result for each, in order. */
  settle(settlements: readonly Settlement[]): Promise<SettleResult[]>;
  /** Moves the end of a lease that is still held. */
  extendLease(change: {
    id: string;
    token: string;
    expiresAt: number;
    isAsync: boolean;
    now: number;
  }): Promise<Task | 'lease_lost' | 'not_found'>;
  /** IN_FLIGHT tasks whose lease has run out, the longest past first, whoever claimed them. */
  endedLeases(ask: { now: number; limit: number }): Promise<WholeTask[]>;
  /** Makes PENDING tasks whose `expiresAt` has passed DEAD (EXPIRED), also in paused queues. */
  expireTasks(ask: { now: number; limit: number }): Promise<Task[]>;
  /**
   * When something next falls due by itself: a PENDING task of a running queue, the end of a lease,
   * an expiry. Undefined: nothing. What is due already is a time in the past.
   */
  nextEventAt(): Promise<{ dueByQueue: ReadonlyMap<string, number>; upkeepAt: number | undefined }>;
  /** Is another task of this FIFO group in flight or waiting to be retried? */
  groupIsBusy(ask: { queue: string; groupKey: string; id: string }): Promise<boolean>;
  /**
   * Calls back when a queue may have work that it did not have before, also from another server. A
   * hint: it may come for nothing, and a lost one only costs time. It may come before the act that
   * brings the work has resolved; a claim that follows it finds that work. Returns how to stop.
   */
  onWork(listener: (queue: string) => void): () => void;

  // Dead letters

  /** One page of DEAD tasks. */
  deadTasks(ask: DeadAsk): Promise<DeadPage>;
  deadGroups(ask: { queue: string; limit: number }): Promise<DeadGroup[]>;
  /**
   * Makes those of the tasks that are DEAD in this queue PENDING again: attempt 0, history kept,
   * `expiresAt` cleared, due at the time given for each. Returns the ids that it changed.
   */
  redrive(change: RedriveChange): Promise<string[]>;
  /** Deletes those of the tasks that are DEAD in this queue. Returns the ids that it deleted. */
  purge(change: PurgeChange): Promise<string[]>;

  // Upkeep

  /** Deletes SUCCEEDED or DEAD tasks that ended before the time given. Returns how many. */
  deleteFinished(ask: {
    queue: string;
    status: 'SUCCEEDED' | 'DEAD';
    endedBefore: number;
    now: number;
    limit: number;
  }): Promise<number>;
  /** Forgets tombstones older than a day. Returns how many. */
  deleteTombstones(ask: { now: number; limit: number }): Promise<number>;

  auditPage(ask: AuditAsk): Promise<AuditRecord[]>;

  /** Resolves when the database answers. */
  probe(): Promise<void>;
  close(): Promise<void>;
}

/** What callers may rely on beyond the calls; an empty object promises nothing. */
export interface StoreCapabilities {
  /**
   * A claim made while a settlement is being written runs after it, so the capacity that the
   * settlement frees can be claimed at once.
   */
  readonly claimsFollowSettlements?: boolean;
  /** Preferred batch sizes of an out-of-process store. */
  readonly batchSizes?: { readonly claim: number; readonly deletion: number };
  /** Signs cursors when several servers share the store. */
  readonly cursorKey?: Uint8Array;
}

/** How long the id of a deleted task is remembered. */
export const tombstoneMs = 86_400_000;

/** The database does not answer. What was asked may or may not have happened: ask again. */
export class StorageUnavailable extends Error {
  override readonly name = 'StorageUnavailable';
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
  /** The queue may hold this many PENDING tasks; 0: any number. */
  maxPending: number;
}

export type InsertResult =
  | { kind: 'stored'; task: Task }
  /** The id was used before; in `queue` of what is given here, which may be another queue. */
  | { kind: 'existing'; task: Task }
  | { kind: 'purged'; tombstone: Tombstone }
  | { kind: 'queue_not_found' }
  | { kind: 'queue_full' };

export interface ClaimAsk {
  queue: string;
  limit: number;
  now: number;
  nodeId: string;
  leaseExpiresAt: number;
  /** One unguessable token for each task that may be claimed. */
  newToken: () => string;
  maxInFlight: number;
  /** Counted over any second, to 20 ms: what started may start again 1,020 ms later at the latest. */
  dispatchPerSecond: number;
  /**
   * FIFO: only the first task of a group may be claimed, by due time and id whatever its priority,
   * and none while another of its group is in flight or, started before, waits to run again: such a
   * one is first. Tasks without a group key are free.
   */
  fifoGroups: boolean;
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
}

export type SettleResult =
  | { kind: 'settled'; task: Task }
  /** This very claim was settled before, with this kind of verdict. */
  | { kind: 'repeated'; task: Task; verdict: Verdict['kind'] }
  /** The lease is another's, or the task is gone. */
  | { kind: 'lease_lost'; task: Task | undefined };

export interface DeadFilter {
  errorType?: string | undefined;
  handlerRef?: string | undefined;
  httpStatus?: number | undefined;
  /** Inclusive. */
  diedFrom?: number | undefined;
  /** Exclusive. */
  diedBefore?: number | undefined;
}

export interface DeadAsk {
  queue: string;
  filter: DeadFilter;
  order: 'newest_first' | 'oldest_first';
  /** The place of the last one seen. */
  after?: DeadPlace | undefined;
  limit: number;
  /** The page ends early when the tasks on it are this large together; it has one at least. */
  maxBytes: number;
}

export interface DeadPlace {
  deadAt: number;
  id: string;
}

export interface DeadPage {
  tasks: WholeTask[];
  /** Where the next page begins; undefined on the last one. */
  next: DeadPlace | undefined;
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

/** An act that is recorded in the audit log in the same commit. */
interface AuditedChange {
  queue: string;
  ids: readonly string[];
  /** Leaves alone what died after this moment, be it for the second time. */
  diedBy: number;
  now: number;
  by: string;
  /** The request's selector as sent, for the audit log. */
  selector: Readonly<Record<string, unknown>>;
}

export interface RedriveChange extends AuditedChange {
  /** When the n-th of `ids` is due. */
  dueAt: (index: number) => number;
}

export type PurgeChange = AuditedChange;

export type { AuditRecord, Verdict };

export interface AuditAsk {
  /** Only acts on these queues are given; undefined: all. */
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
