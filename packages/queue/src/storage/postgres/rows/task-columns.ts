import type {
  DeadReason,
  FullTask,
  LastError,
  Progress,
  Task,
  Tombstone,
  WholeTask,
} from '../../../core/task.js';
import type { TaskStatus } from '../../../core/task.js';
import type { Verdict } from '../../port/task-store.js';
import { attemptsOf } from './history.js';

/** A task as statements return it. */
export interface TaskColumns {
  id: string;
  queue: string;
  handler_ref: string;
  content_type: string;
  headers: string;
  priority: number;
  group_key: string | null;
  created_at: number;
  submitted_by: string;
  status: number;
  attempt: number;
  total_attempts: number;
  redrive_count: number;
  updated_at: number;
  due_at: number | null;
  expires_at: number | null;
  lease_token: string | null;
  lease_expires_at: number | null;
  lease_node: string | null;
  lease_started_at: number | null;
  lease_async: boolean | null;
  last_error: string | null;
  ended_at: number | null;
  dead_reason: string | null;
}

export interface WholeColumns extends TaskColumns {
  payload: Buffer;
  /** A JSON array without its brackets. */
  attempts: string;
}

export interface FullColumns extends WholeColumns {
  /** JSON text, or "" if it was too large. */
  result: string | null;
  progress: string | null;
  unique_key: string | null;
}

/** The row of an id: a task, or a tombstone if it has no status. */
export interface FoundColumns extends TaskColumns {
  purged_at: number | null;
  purged_status: number | null;
  settled_token: string | null;
  settled_verdict: number | null;
}

export const statuses = { ready: 0, scheduled: 1, inFlight: 2, succeeded: 3, dead: 4 } as const;
const statusNames: readonly TaskStatus[] = ['PENDING', 'PENDING', 'IN_FLIGHT', 'SUCCEEDED', 'DEAD'];

export const verdicts = [
  'succeeded',
  'retry',
  'dead',
  'handed_back',
] as const satisfies readonly Verdict['kind'][];

export function toTask(row: TaskColumns): Task {
  return {
    id: row.id,
    queue: row.queue,
    handlerRef: row.handler_ref,
    // In flight without a group: only the lease shows it.
    status: row.lease_token === null ? statusNames[row.status]! : 'IN_FLIGHT',
    payloadContentType: row.content_type,
    headers: row.headers === '{}' ? {} : (JSON.parse(row.headers) as Record<string, string>),
    priority: row.priority,
    groupKey: row.group_key,
    attempt: row.attempt,
    totalAttempts: row.total_attempts,
    redriveCount: row.redrive_count,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    dueAt: row.lease_token === null ? row.due_at : null,
    expiresAt: row.expires_at,
    lease: leaseOf(row),
    completedAt: row.status === statuses.succeeded ? row.ended_at : null,
    deadAt: row.status === statuses.dead ? row.ended_at : null,
    deadReason: row.dead_reason as DeadReason | null,
    lastError: row.last_error === null ? null : (JSON.parse(row.last_error) as LastError),
    submittedBy: row.submitted_by,
  };
}

export function toWholeTask(row: WholeColumns): WholeTask {
  const task = toTask(row) as WholeTask;
  task.payload = row.payload;
  task.attempts = attemptsOf(row.attempts);
  return task;
}

export function toFullTask(row: FullColumns): FullTask {
  const details = {
    result: row.result === '' ? null : row.result,
    resultDropped: row.result === '',
    progress: progressOf(row),
    uniqueKey: row.unique_key,
  };
  return Object.assign(toWholeTask(row), details);
}

export function progressOf({ progress }: { progress: string | null }): Progress | null {
  return progress === null ? null : (JSON.parse(progress) as Progress);
}

export function statusName(status: number): TaskStatus {
  return statusNames[status]!;
}

export function toTombstone(row: FoundColumns): Tombstone {
  return {
    id: row.id,
    queue: row.queue,
    handlerRef: row.handler_ref,
    status: statusNames[row.purged_status!]!,
    purgedAt: row.purged_at!,
  };
}

function leaseOf(row: TaskColumns): Task['lease'] {
  if (row.lease_token === null) return null;
  return {
    token: row.lease_token,
    expiresAt: row.lease_expires_at!,
    nodeId: row.lease_node!,
    startedAt: row.lease_started_at!,
    isAsync: row.lease_async!,
  };
}

/** PostgreSQL does not store zero bytes in text. */
export function withoutZeros(text: string): string {
  return text.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text;
}

/** Times are whole milliseconds; a redrive that is spread out may have fractions. */
export function wholeMs(time: number): number {
  return Math.floor(time);
}
