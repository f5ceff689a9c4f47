import type { RowReader } from '@millrace/engine';
import type { AuditRecord } from '../../core/audit.js';
import type { FullTask, Tombstone } from '../../core/task.js';
import type { TaskWithResult } from '../port/flow-store.js';
import { toTask, toTombstone } from '../port/store-parts.js';
import { tombstoneMs, type AuditQuery, type GroupQuery } from '../port/task-store.js';
import { readGroup } from './indexes.js';
import {
  auditKey,
  firstOf,
  firstTime,
  groupBytes,
  idKey,
  kinds,
  lastTimeOf,
  queueKey,
  timeOf,
} from './keys.js';
import { readQueue } from './queue-state.js';
import type { RecentTasks } from './step.js';
import { decodeTask, isTombstone, showFull, type StoredTask } from './task-codec.js';

export function oldestPendingAt(rows: RowReader, queue: number): number | null {
  const first = firstOf(rows, kinds.created, queue);
  return first ? lastTimeOf(first) : null;
}

export function task(
  rows: RowReader,
  id: string,
  recent: RecentTasks,
): FullTask | Tombstone | undefined {
  const found = find(rows, id, recent);
  return found && !isTombstone(found) ? showFull(rows, found) : found;
}

export function tasksWithResults(rows: RowReader, ids: readonly string[]): TaskWithResult[] {
  return ids.flatMap((id) => {
    const found = find(rows, id);
    if (!found || isTombstone(found)) return [];
    const result = found.hasResult ? rows.get(idKey(kinds.result, id)) : undefined;
    return [{ ...toTask(found.row), result: result?.toString() ?? null }];
  });
}

function find(
  rows: RowReader,
  id: string,
  recent?: RecentTasks,
): StoredTask | Tombstone | undefined {
  const bytes = rows.get(idKey(kinds.task, id));
  if (!bytes) return undefined;
  const found = recent?.peek(id, bytes) ?? decodeTask(id, bytes);
  if (isTombstone(found)) return found;
  // Its queue may have been deleted; the task will be.
  const deletion = rows.get(queueKey(kinds.deletedQueue, found.queueNumber));
  return deletion ? toTombstone(found.row, Number(deletion.toString())) : found;
}

export function groupIsBusy(rows: RowReader, query: GroupQuery): boolean {
  const queue = readQueue(rows, query.queue);
  if (!queue) return false;
  const { inFlight, retried } = readGroup(rows, queue.number, groupBytes(query.groupKey));
  if (query.maxPerGroup) return inFlight >= query.maxPerGroup;
  const found = find(rows, query.id);
  let own = 0;
  if (found && !isTombstone(found) && isOf(found, query)) {
    const { status, started } = found.row;
    if (status === 'IN_FLIGHT' || (status === 'PENDING' && started)) own = 1;
  }
  return inFlight + retried > own;
}

function isOf({ row }: StoredTask, query: { queue: string; groupKey: string }): boolean {
  return row.queue === query.queue && row.groupKey === query.groupKey;
}

export function hasExpired(rows: RowReader, now: number): boolean {
  return (firstTime(rows, kinds.expiry) ?? Infinity) <= now;
}

export function hasOldTombstones(rows: RowReader, now: number): boolean {
  return (firstTime(rows, kinds.tombstone) ?? Infinity) <= now - tombstoneMs;
}

export function hasFinished(
  rows: RowReader,
  query: { queue: string; status: 'SUCCEEDED' | 'DEAD'; endedBefore: number },
): boolean {
  const queue = readQueue(rows, query.queue);
  if (!queue) return false;
  const kind = query.status === 'DEAD' ? kinds.dead : kinds.done;
  const first = firstOf(rows, kind, queue.number);
  return first !== undefined && timeOf(first) < query.endedBefore;
}

export function deletedQueues(rows: RowReader): number[] {
  const range = { start: Buffer.of(kinds.deletedQueue), end: Buffer.of(kinds.deletedQueue + 1) };
  return Array.from(rows.range(range), ({ key }) => key.readUInt32BE(1));
}

const auditSlice = 500;

/** Reads a page of the audit log, newest first, in slices. */
export class AuditReader {
  readonly records: AuditRecord[] = [];
  #before: number;

  constructor(private readonly query: AuditQuery) {
    this.#before = Math.min(query.beforeSeq ?? Infinity, 2 ** 48 - 1);
  }

  readSlice(rows: RowReader): boolean {
    const { limit } = this.query;
    if (this.#before <= 1 || this.records.length >= limit) return true;
    const start = auditKey(this.#before - 1);
    const range = { start, end: auditKey(0), reverse: true, limit: auditSlice };
    let seen = 0;
    for (const { value } of rows.range(range)) {
      const record = JSON.parse(value.toString()) as AuditRecord;
      seen++;
      this.#before = record.seq;
      if (this.#matches(record)) this.records.push(record);
      if (this.records.length >= limit) return true;
    }
    return seen < auditSlice;
  }

  #matches(record: AuditRecord): boolean {
    const { queue, from, to, allowed } = this.query;
    return (
      (queue === undefined || record.queue === queue) &&
      (from === undefined || record.at >= from) &&
      (to === undefined || record.at < to) &&
      (!allowed || allowed(record.queue))
    );
  }
}
