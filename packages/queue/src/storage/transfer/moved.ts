import { type AuditRecord, canonicalJson } from '../../core/audit.js';
import type { Queue } from '../../core/queue.js';
import type { Attempt, Tombstone } from '../../core/task.js';
import type { Starts } from '../../core/pacing.js';
import type { FlowRow } from '../port/flow-store.js';
import type { Row, RowTable } from '../port/task-store.js';
import type { TaskRow } from '../port/store-parts.js';

/** A queue with its claim state, as transferred. */
export interface MovedQueue {
  queue: Queue;
  /** The last group served, by priority. */
  turns: Readonly<Record<number, string | null>>;
  starts: Starts;
  /** Its schedules and jobs. */
  rows: readonly Row[];
}

/** Statistics are not moved. */
export const movedTables: readonly RowTable[] = ['schedule', 'job'];

/** A task with all stored state. */
export interface MovedTask {
  row: TaskRow;
  payload: Uint8Array;
  attempts: readonly Attempt[];
  /** JSON text; null: none. */
  result: string | null;
  /** Steps, signals and links; absent: none. */
  flowRows?: readonly FlowRow[];
}

export type Moved = MovedTask | Tombstone;

/** Progress of a transfer, stored in the target. */
export interface Mark {
  source: string;
  lastId: string;
  lastSeq: number;
  finished: boolean;
}

/** The source of a transfer, read in order of ids and sequence numbers. */
export interface Source {
  queues(): Promise<MovedQueue[]>;
  /** The next tasks after an id; fewer than `limit`: the end. */
  tasks(afterId: string, limit: number): Promise<Moved[]>;
  audit(afterSeq: number, limit: number): Promise<AuditRecord[]>;
  /** Approximate number of tasks, for progress output. */
  size(): Promise<number>;
  close(): Promise<void>;
}

/** The target of a transfer. Each call is one commit, with its mark. */
export interface Target extends Source {
  mark(): Promise<Mark | undefined>;
  /** True if it has no data, not even a queue. */
  isEmpty(): Promise<boolean>;
  putQueues(queues: readonly MovedQueue[], mark: Mark): Promise<void>;
  putTasks(tasks: readonly Moved[], mark: Mark): Promise<void>;
  putAudit(records: readonly AuditRecord[], mark: Mark): Promise<void>;
  /** Everything was copied and compared: the target becomes a usable store. */
  finish(mark: Mark): Promise<void>;
}

export function isMovedTask(moved: Moved): moved is MovedTask {
  return 'row' in moved;
}

export function idOfMoved(moved: Moved): string {
  return isMovedTask(moved) ? moved.row.id : moved.id;
}

/** Canonical text of a task, the same for every store. */
export function textOf(moved: Moved): string {
  if (!isMovedTask(moved)) return canonicalJson(moved);
  const payload = Buffer.from(moved.payload).toString('base64');
  const text = canonicalJson(JSON.parse(JSON.stringify({ ...moved, payload })));
  // PostgreSQL text cannot contain U+0000.
  return text.replaceAll('\\u0000', '\uFFFD');
}

/** `started` has no meaning for finished tasks, and not every store keeps it. */
export function movedRow(row: TaskRow): TaskRow {
  const isOver = row.status === 'SUCCEEDED' || row.status === 'DEAD';
  return isOver && row.started ? { ...row, started: false } : row;
}

/** Whether the task holds its unique key. */
export function holdsKey(row: TaskRow, now: number): boolean {
  if (row.uniqueKey === null) return false;
  if (row.uniqueUntil !== null) return row.uniqueUntil > now;
  return row.status === 'PENDING' || row.status === 'IN_FLIGHT';
}
