import type { AuditRecord } from '../../../core/audit.js';
import { canonicalJson } from '../../../core/canonical-json.js';
import type { Queue } from '../../../core/queue.js';
import type { Attempt, Tombstone } from '../../../core/task.js';
import type { Starts } from '../../../core/start-window.js';
import type { TaskRow } from '../../task-row.js';

/** A queue as it goes from one store to another. */
export interface MovedQueue {
  queue: Queue;
  /** By priority, the group whose turn was last. */
  turns: Readonly<Record<number, string | null>>;
  starts: Starts;
}

/** Everything there is of a task. */
export interface MovedTask {
  row: TaskRow;
  payload: Uint8Array;
  attempts: readonly Attempt[];
}

export type Moved = MovedTask | Tombstone;

/** How far a target has come. */
export interface Mark {
  source: string;
  lastId: string;
  lastSeq: number;
  finished: boolean;
}

/** What is read from, in the order of ids and numbers. */
export interface Source {
  queues(): Promise<MovedQueue[]>;
  /** The next after an id; fewer than `limit`: the last. */
  tasks(afterId: string, limit: number): Promise<Moved[]>;
  audit(afterSeq: number, limit: number): Promise<AuditRecord[]>;
  /** About how many tasks there are, for the display. */
  size(): Promise<number>;
  close(): Promise<void>;
}

/** What is written to. Each call is one commit, with its mark. */
export interface Target extends Source {
  mark(): Promise<Mark | undefined>;
  /** There is nothing in it, not even a queue. */
  isEmpty(): Promise<boolean>;
  putQueues(queues: readonly MovedQueue[], mark: Mark): Promise<void>;
  putTasks(tasks: readonly Moved[], mark: Mark): Promise<void>;
  putAudit(records: readonly AuditRecord[], mark: Mark): Promise<void>;
  /** Everything is there and was compared: from now on it is a store like any other. */
  finish(mark: Mark): Promise<void>;
}

export function isMovedTask(moved: Moved): moved is MovedTask {
  return 'row' in moved;
}

export function idOfMoved(moved: Moved): string {
  return isMovedTask(moved) ? moved.row.id : moved.id;
}

/** The same text for the same task, whichever store it was read from. */
export function textOf(moved: Moved): string {
  if (!isMovedTask(moved)) return canonicalJson(moved);
  const payload = Buffer.from(moved.payload).toString('base64');
  const text = canonicalJson(JSON.parse(JSON.stringify({ ...moved, payload })));
  // PostgreSQL keeps no zero in a text.
  return text.replaceAll('\\u0000', '\uFFFD');
}

/** Whether it was started says nothing of one that is over, and is not kept everywhere. */
export function movedRow(row: TaskRow): TaskRow {
  const isOver = row.status === 'SUCCEEDED' || row.status === 'DEAD';
  return isOver && row.started ? { ...row, started: false } : row;
}
