import type { AuditAct } from '../../core/audit.js';
import type { InsertResult, NewTask } from './task-store.js';

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

export type RowTable = 'schedule' | 'job' | 'history' | 'totals' | 'worker';

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
