import type { TaskFlow } from './flow.js';

/** One unit of work and its state. Times are Unix milliseconds; null: not set. */
export interface Task {
  /** A ULID in upper case, unique over all queues. */
  id: string;
  queue: string;
  handlerRef: string;
  status: TaskStatus;
  payloadContentType: string;
  headers: Readonly<Record<string, string>>;
  /** 0 to 9; higher is claimed first. */
  priority: number;
  groupKey: string | null;
  /**
   * Claims since the submit or the last redrive, including a running one, without handed-back
   * ones.
   */
  attempt: number;
  /** The same over all redrives. */
  totalAttempts: number;
  redriveCount: number;
  createdAt: number;
  updatedAt: number;
  /** When PENDING, the time from which it may be claimed. */
  dueAt: number | null;
  expiresAt: number | null;
  lease: Lease | null;
  completedAt: number | null;
  deadAt: number | null;
  deadReason: DeadReason | null;
  lastError: LastError | null;
  submittedBy: string;
  /** What the task decides for itself; absent: nothing. */
  options?: TaskOptions | undefined;
  /** Dependencies, waits and steps; null or absent: the task has none. */
  flow?: TaskFlow | null;
}

/** Settings of one task. What is absent is as the queue has it. */
export interface TaskOptions {
  maxAttempts?: number;
  backoff?: TaskBackoff;
  timeoutMs?: number;
  /** How long it is kept after its end. */
  retainMs?: number;
  /** Only claims that have all of them get the task. */
  labels?: readonly string[];
}

export interface TaskBackoff {
  kind: 'exponential' | 'fixed';
  ms: number;
  maxMs?: number;
  /** The share of the delay that is random, from 0 to 1. */
  jitter?: number;
}

export type TaskStatus = 'PENDING' | 'IN_FLIGHT' | 'SUCCEEDED' | 'DEAD';
export type DeadReason =
  'ATTEMPTS_EXHAUSTED' | 'PERMANENT' | 'EXPIRED' | 'CANCELLED' | 'DEPENDENCY_FAILED' | 'FLOW_STUCK';

/** A task with its payload and the history of its attempts: the first one and the last 49. */
export interface WholeTask extends Task {
  payload: Uint8Array;
  attempts: readonly Attempt[];
}

/** A task with everything that is stored of it. */
export interface FullTask extends WholeTask {
  /** JSON text; null: none. */
  result: string | null;
  /** The callback answered with a result that was too large. */
  resultDropped: boolean;
  progress: Progress | null;
  uniqueKey: string | null;
}

/** How far the work is, as the handler reported it. */
export interface Progress {
  /** From 0 to 100. */
  percent: number | null;
  message: string | null;
  at: number;
}

/** The right to run a task until a time. The next claim invalidates the token. */
export interface Lease {
  /** Opaque and unguessable; new with every claim. */
  token: string;
  expiresAt: number;
  /** Which server claimed it. */
  nodeId: string;
  startedAt: number;
  /** The handler continues asynchronously and reports the result later. */
  isAsync: boolean;
}

export interface LastError {
  errorType: string;
  message: string;
  httpStatus: number | null;
  at: number;
}

/** One attempt that has ended. */
export interface Attempt {
  attempt: number;
  redrive: number;
  startedAt: number;
  endedAt: number;
  durationMs: number;
  outcome: AttemptOutcome;
  errorType: string | null;
  message: string | null;
  httpStatus: number | null;
  retryAfterMs: number | null;
  nextAttemptAt: number | null;
  responseSnippet: string | null;
  url: string | null;
  remoteIp: string | null;
  nodeId: string;
  traceId: string | null;
}

export type AttemptOutcome = 'SUCCEEDED' | 'FAILED' | 'LEASE_EXPIRED' | 'INTERRUPTED' | 'DEFERRED';

/** Attempts with this outcome are in the history and do not count otherwise. */
export function isUncounted(outcome: AttemptOutcome): boolean {
  return outcome === 'INTERRUPTED' || outcome === 'DEFERRED';
}

/** What remains of a deleted task for a day, so that a late resubmit with its id runs nothing. */
export interface Tombstone {
  id: string;
  queue: string;
  handlerRef: string;
  /** The last status of the task. */
  status: TaskStatus;
  purgedAt: number;
}
