import type {
  Attempt,
  FullTask,
  LastError,
  Lease,
  Progress,
  Task,
  TaskStatus,
  Tombstone,
  WholeTask,
} from '../../core/task.js';
import type { NewTask, Settlement, Verdict } from './task-store.js';

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
    started: false,
    settled: null,
    progress: null,
    resultDropped: false,
    uniqueKey: task.uniqueKey ?? null,
    uniqueUntil: task.uniqueUntil ?? null,
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
    case 'retry':
      row.status = 'PENDING';
      row.dueAt = verdict.dueAt;
  }
}

export function expireRow(row: TaskRow, now: number): void {
  row.status = 'DEAD';
  row.dueAt = null;
  row.updatedAt = now;
  row.deadAt = now;
  row.deadReason = 'EXPIRED';
  row.lastError = expiredError(now);
}

export function expiredError(at: number): LastError {
  const message = 'The task was still waiting when its expires_at passed.';
  return { errorType: 'EXPIRED', message, httpStatus: null, at };
}

export function cancelRow(row: TaskRow, message: string, now: number): void {
  row.status = 'DEAD';
  row.dueAt = null;
  row.updatedAt = now;
  row.deadAt = now;
  row.deadReason = 'CANCELLED';
  row.lastError = cancelledError(message, now);
}

export function cancelledError(message: string, at: number): LastError {
  return { errorType: 'CANCELLED', message, httpStatus: null, at };
}

export function updateRow(
  row: TaskRow,
  {
    dueAt,
    priority,
    now,
  }: { dueAt?: number | undefined; priority?: number | undefined; now: number },
): void {
  row.dueAt = dueAt ?? row.dueAt;
  row.priority = priority ?? row.priority;
  row.updatedAt = now;
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
