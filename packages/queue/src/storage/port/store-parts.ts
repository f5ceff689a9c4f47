import type { TaskFlow } from '../../core/flow.js';
import type { QueueComponents } from '@millrace/contract/queue';
import type { Queue, QueueConfig } from '../../core/queue.js';
import type {
  Attempt,
  FullTask,
  LastError,
  Lease,
  Progress,
  Task,
  TaskOptions,
  TaskStatus,
  Tombstone,
  WholeTask,
} from '../../core/task.js';
import type { UpdateTaskChange } from './task-changes.js';
import {
  type ClaimRequest,
  type DeadFilter,
  type DeadGroup,
  type NewTask,
  QueueChanged,
  type Settlement,
  type Verdict,
  type WorkListener,
} from './task-store.js';

/**
 * A task as stored. The functions below change it in place, and define the state changes for every
 * store; callers get copies.
 */
export interface TaskRow extends Task {
  /** Claimed since the submit or the last redrive: while PENDING it blocks its FIFO group. */
  started: boolean;
  /** The claim that was settled last, and how. */
  settled: SettledClaim | null;
  progress: Progress | null;
  resultDropped: boolean;
  uniqueKey: string | null;
  /** Null: the key is held until the task ends. */
  uniqueUntil: number | null;
}

export interface SettledClaim {
  token: string;
  verdict: Verdict['kind'];
}

/** Attempts in the history of a task: the first one and the last 49. */
export const maxStoredAttempts = 50;

export function newRow(task: NewTask, now: number): TaskRow {
  return {
    id: task.id,
    queue: task.queue,
    handlerRef: task.handlerRef,
    status: 'PENDING',
    payloadContentType: task.payloadContentType,
    headers: task.headers,
    priority: task.priority,
    groupKey: task.groupKey,
    attempt: 0,
    totalAttempts: 0,
    redriveCount: 0,
    createdAt: now,
    updatedAt: now,
    dueAt: task.dueAt,
    expiresAt: task.expiresAt,
    lease: null,
    completedAt: null,
    deadAt: null,
    deadReason: null,
    lastError: null,
    submittedBy: task.submittedBy,
    options: task.options,
    started: false,
    settled: null,
    progress: null,
    resultDropped: false,
    uniqueKey: task.uniqueKey ?? null,
    uniqueUntil: task.uniqueUntil ?? null,
    flow: task.flow ?? null,
  };
}

export function claimRow(
  row: TaskRow,
  claim: { token: string; now: number; nodeId: string; leaseExpiresAt: number },
): void {
  row.status = 'IN_FLIGHT';
  row.attempt++;
  row.totalAttempts++;
  row.updatedAt = claim.now;
  row.dueAt = null;
  row.started = true;
  row.lease = {
    token: claim.token,
    expiresAt: claim.leaseExpiresAt,
    nodeId: claim.nodeId,
    startedAt: claim.now,
    isAsync: false,
  };
  if (row.flow?.wait) row.flow = wokenByTime(row.flow);
}

/** A task that is claimed while it waits was woken by its time. */
export function wokenByTime(flow: TaskFlow): TaskFlow {
  const { until: wokenAt } = flow.wait!;
  return { ...flow, wait: undefined, wokenBy: { kind: 'timer' }, wokenAt };
}

/** False: the settlement is for an expired lease, and this one was extended since. */
export function mayEnd(lease: Lease, { expiredBy }: Settlement): boolean {
  return expiredBy === undefined || lease.expiresAt <= expiredBy;
}

/** See `extendLease` of the store. */
export function extendedExpiry(
  lease: Lease,
  { expiresAt, replaces }: { expiresAt: number; replaces?: number | undefined },
): number {
  return lease.expiresAt === replaces ? expiresAt : Math.max(lease.expiresAt, expiresAt);
}

export function settleRow(row: TaskRow, settlement: Settlement): void {
  const { token, now, verdict, error } = settlement;
  row.lease = null;
  row.updatedAt = now;
  row.settled = { token, verdict: verdict.kind };
  if (error) row.lastError = error;
  switch (verdict.kind) {
    case 'succeeded':
      row.status = 'SUCCEEDED';
      row.completedAt = now;
      row.resultDropped = settlement.resultDropped ?? false;
      return;
    case 'dead':
      row.status = 'DEAD';
      row.deadAt = now;
      row.deadReason = verdict.reason;
      return;
    case 'handed_back':
      row.attempt--;
      row.totalAttempts--;
      row.status = 'PENDING';
      row.dueAt = verdict.dueAt;
      return;
    case 'suspended':
      row.attempt--;
      row.totalAttempts--;
      row.status = 'PENDING';
      row.dueAt = verdict.dueAt;
      // It holds no turn of its group.
      row.started = false;
      row.flow = verdict.flow;
      return;
    case 'retry':
      row.status = 'PENDING';
      row.dueAt = verdict.dueAt;
  }
}

/** Ends a task that was not claimed. */
function endRow(row: TaskRow, reason: NonNullable<Task['deadReason']>, error: LastError): void {
  row.status = 'DEAD';
  row.dueAt = null;
  row.updatedAt = error.at;
  row.deadAt = error.at;
  row.deadReason = reason;
  row.lastError = error;
}

export function expireRow(row: TaskRow, now: number): void {
  endRow(row, 'EXPIRED', expiredError(now));
  row.flow &&= { ...row.flow, wait: undefined };
}

export function expiredError(at: number): LastError {
  const message = 'The task was still waiting when its expires_at passed.';
  return { errorType: 'EXPIRED', message, httpStatus: null, at };
}

export function cancelRow(row: TaskRow, message: string, now: number): void {
  endRow(row, 'CANCELLED', cancelledError(message, now));
  row.flow &&= { ...row.flow, wait: undefined };
}

export function failDependent(row: TaskRow, error: LastError): void {
  endRow(row, 'DEPENDENCY_FAILED', error);
}

export function cancelledError(message: string, at: number): LastError {
  return { errorType: 'CANCELLED', message, httpStatus: null, at };
}

export function updateRow(
  row: TaskRow,
  {
    dueAt,
    priority,
    payload,
    now,
  }: Pick<UpdateTaskChange, 'dueAt' | 'priority' | 'payload' | 'now'>,
): void {
  row.dueAt = dueAt ?? row.dueAt;
  row.priority = priority ?? row.priority;
  row.payloadContentType = payload?.contentType ?? row.payloadContentType;
  row.updatedAt = now;
}

/** A blocked task cannot be made due, and the time of a suspended one is its handler's. */
export function mayUpdate(
  { status, flow }: Pick<Task, 'status' | 'flow'>,
  { action, dueAt }: Pick<UpdateTaskChange, 'action' | 'dueAt'>,
): boolean {
  if (status !== 'PENDING') return false;
  if (dueAt === undefined || !flow?.wait) return true;
  return action === 'run_now' && flow.wait.kind !== 'dependencies';
}

export function redriveRow(row: TaskRow, dueAt: number, now: number): void {
  row.status = 'PENDING';
  row.attempt = 0;
  row.redriveCount++;
  row.updatedAt = now;
  row.dueAt = dueAt;
  row.expiresAt = null;
  row.deadAt = null;
  row.deadReason = null;
  row.started = false;
  row.flow &&= { ...row.flow, wait: undefined };
}

/** The history with one more attempt. */
export function withAttempt(history: readonly Attempt[], attempt: Attempt): Attempt[] {
  if (history.length < maxStoredAttempts) return [...history, attempt];
  return [history[0]!, ...history.slice(history.length - maxStoredAttempts + 2), attempt];
}

export function toTombstone(
  row: { id: string; queue: string; handlerRef: string; status: TaskStatus },
  now: number,
): Tombstone {
  const { id, queue, handlerRef, status } = row;
  return { id, queue, handlerRef, status, purgedAt: now };
}

// Spelled out: object spread was the largest cost of a claim.
export function toTask(row: TaskRow): Task {
  return {
    id: row.id,
    queue: row.queue,
    handlerRef: row.handlerRef,
    status: row.status,
    payloadContentType: row.payloadContentType,
    headers: row.headers,
    priority: row.priority,
    groupKey: row.groupKey,
    attempt: row.attempt,
    totalAttempts: row.totalAttempts,
    redriveCount: row.redriveCount,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
    dueAt: row.dueAt,
    expiresAt: row.expiresAt,
    lease: copyOfLease(row),
    completedAt: row.completedAt,
    deadAt: row.deadAt,
    deadReason: row.deadReason,
    lastError: row.lastError,
    submittedBy: row.submittedBy,
    options: row.options,
    flow: row.flow ?? null,
  };
}

export function toWholeTask(
  row: TaskRow,
  payload: Uint8Array,
  attempts: readonly Attempt[],
): WholeTask {
  const task = toTask(row) as WholeTask;
  task.payload = payload;
  task.attempts = attempts;
  return task;
}

export function toFullTask(row: TaskRow, whole: WholeTask, result: string | null): FullTask {
  const { progress, resultDropped, uniqueKey } = row;
  return Object.assign(whole, { result, resultDropped, progress, uniqueKey });
}

function copyOfLease({ lease }: TaskRow): Task['lease'] {
  if (!lease) return null;
  const { token, expiresAt, nodeId, startedAt, isAsync } = lease;
  return { token, expiresAt, nodeId, startedAt, isAsync };
}

/** The listeners of a task store. */
export abstract class ListeningStore {
  readonly #work = new Set<WorkListener>();
  readonly #cancelled = new Set<(id: string) => void>();
  readonly #ended = new Set<(id: string) => void>();
  readonly #events = new Set<() => void>();

  onWork(listener: WorkListener): () => void {
    this.#work.add(listener);
    return () => this.#work.delete(listener);
  }

  onCancelled(listener: (id: string) => void): () => void {
    this.#cancelled.add(listener);
    return () => this.#cancelled.delete(listener);
  }

  onEnded(listener: (id: string) => void): () => void {
    this.#ended.add(listener);
    return () => this.#ended.delete(listener);
  }

  onEvents(listener: () => void): () => void {
    this.#events.add(listener);
    return () => this.#events.delete(listener);
  }

  protected get hasEventListeners(): boolean {
    return this.#events.size > 0;
  }

  /** There may be new events. */
  protected notifyEvents(): void {
    for (const listener of this.#events) listener();
  }

  protected notifyWork(queue: string, handlers?: ReadonlySet<string>): void {
    for (const listener of this.#work) listener(queue, handlers);
  }

  protected notifyCancelled(id: string): void {
    for (const listener of this.#cancelled) listener(id);
  }

  /** Call it with tasks that may have ended. */
  protected notifyEnded(task: { id: string; status: TaskStatus }): void {
    if (task.status !== 'SUCCEEDED' && task.status !== 'DEAD') return;
    for (const listener of this.#ended) listener(task.id);
  }

  protected removeListeners(): void {
    for (const listeners of [this.#work, this.#cancelled, this.#ended, this.#events]) {
      listeners.clear();
    }
  }
}

/** Whether the queue exists and is not paused. Throws if it is not the expected one. */
export function isClaimable<Q extends Queue>(
  queue: Q | undefined,
  { queue: name, expected }: ClaimRequest,
): queue is Q {
  const isActive = queue !== undefined && !queue.paused;
  if (!expected) return isActive;
  const { incarnation, version } = expected;
  if (isActive && queue.incarnation === incarnation && queue.version === version) return true;
  throw queueChanged(name);
}

export function queueChanged(name: string): QueueChanged {
  return new QueueChanged(`The queue ${name} was paused, deleted or configured`);
}

/** The fields of a dead task that filters use. */
export interface DeadFacts {
  deadAt: number;
  handlerRef: string;
  errorType: string | null;
  httpStatus: number | null;
}

export function deadFacts(task: Task): DeadFacts {
  const { deadAt, handlerRef, lastError } = task;
  const errorType = lastError?.errorType ?? null;
  return { deadAt: deadAt!, handlerRef, errorType, httpStatus: lastError?.httpStatus ?? null };
}

export function matchesDeadFilter(facts: DeadFacts, filter: DeadFilter): boolean {
  const { errorType, handlerRef, httpStatus, diedFrom, diedBefore } = filter;
  if (diedFrom !== undefined && facts.deadAt < diedFrom) return false;
  if (diedBefore !== undefined && facts.deadAt >= diedBefore) return false;
  if (errorType !== undefined && facts.errorType !== errorType) return false;
  if (handlerRef !== undefined && facts.handlerRef !== handlerRef) return false;
  return httpStatus === undefined || facts.httpStatus === httpStatus;
}

/** Extra bytes of field names and times in the API's JSON, per task and per attempt. */
const wireExtra = { task: 512, attempt: 192 };

/** Approximate size of a task in the JSON of a page. */
export function pageBytes(task: WholeTask): number {
  const payload = Math.ceil(task.payload.length / 3) * 4;
  const { payload: _payload, ...rest } = task;
  return (
    payload +
    Buffer.byteLength(JSON.stringify(rest)) +
    wireExtra.task +
    wireExtra.attempt * task.attempts.length
  );
}

/** Groups failures by kind; add tasks in the order of their deaths. */
export class DeadGroups {
  readonly #groups = new Map<string, DeadGroup>();

  add(id: string, { deadAt, handlerRef, errorType, httpStatus }: DeadFacts): void {
    const key = JSON.stringify([errorType, handlerRef, httpStatus]);
    const group = this.#groups.get(key);
    if (group) {
      group.count++;
      group.lastSeenAt = deadAt;
      group.sampleId = id;
      return;
    }
    const first = { errorType, handlerRef, httpStatus, count: 1 };
    this.#groups.set(key, { ...first, firstSeenAt: deadAt, lastSeenAt: deadAt, sampleId: id });
  }

  /** Largest group first, then the most recent. */
  top(limit: number): DeadGroup[] {
    const order = (a: DeadGroup, b: DeadGroup) =>
      b.count - a.count || b.lastSeenAt - a.lastSeenAt || (a.sampleId < b.sampleId ? 1 : -1);
    return [...this.#groups.values()].toSorted(order).slice(0, limit);
  }
}

type GivenOptions = Pick<
  QueueComponents['schemas']['ScheduledTask'],
  'max_attempts' | 'backoff' | 'timeout_ms' | 'retain_ms' | 'labels'
>;

/** Undefined if the task decides nothing for itself. */
export function taskOptions(given: GivenOptions): TaskOptions | undefined {
  const { max_attempts, backoff, timeout_ms, retain_ms, labels } = given;
  const options: TaskOptions = {
    ...(max_attempts !== undefined && { maxAttempts: max_attempts }),
    ...(backoff && {
      backoff: {
        kind: backoff.kind,
        ms: backoff.ms,
        ...(backoff.max_ms !== undefined && { maxMs: backoff.max_ms }),
        ...(backoff.jitter !== undefined && { jitter: Number(backoff.jitter) }),
      },
    }),
    ...(timeout_ms !== undefined && { timeoutMs: timeout_ms }),
    ...(retain_ms !== undefined && { retainMs: retain_ms }),
    ...(labels && labels.length > 0 && { labels: [...new Set(labels)] }),
  };
  return Object.keys(options).length > 0 ? options : undefined;
}

/** Whether a claim with these labels may take the task; undefined: any claim may. */
export function hasLabels(
  { options }: Pick<Task, 'options'>,
  labels: readonly string[] | undefined,
): boolean {
  return !options?.labels || !labels || options.labels.every((label) => labels.includes(label));
}

/** What a config without `circuit_breaker` got before pull queues had none. */
const oldBreaker: QueueConfig['circuit_breaker'] = {
  enabled: true,
  failure_ratio: 0.7,
  min_requests: 10,
  window_ms: 30_000,
  open_ms: 30_000,
};

/** `isSet`: a person wrote it, although its values are the defaults. */
type StoredBreaker = QueueConfig['circuit_breaker'] & { isSet?: boolean };

/** The config to store. A pull queue has a circuit breaker only if the request names it. */
export function configToStore(config: QueueConfig, hasBreaker: boolean): QueueConfig {
  if (config.callback.protocol !== 'pull') return config;
  const { circuit_breaker: breaker } = config;
  const stored: StoredBreaker = hasBreaker
    ? { ...breaker, isSet: true }
    : { ...breaker, enabled: false };
  return { ...config, circuit_breaker: stored };
}

/** A stored config as it is used. The old default, which nobody set, means none on a pull queue. */
export function configInUse(config: QueueConfig): QueueConfig {
  const { isSet, ...breaker } = config.circuit_breaker as StoredBreaker;
  const names = Object.keys(oldBreaker) as (keyof typeof oldBreaker)[];
  const isOldDefault = names.every((name) => breaker[name] === oldBreaker[name]);
  const isUnset = config.callback.protocol === 'pull' && isOldDefault && isSet !== true;
  if (!isUnset && isSet === undefined) return config;
  return { ...config, circuit_breaker: isUnset ? { ...breaker, enabled: false } : breaker };
}
