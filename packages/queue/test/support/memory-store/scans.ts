import { never } from '../../../src/core/flow.js';
import { mayStart, withStarts } from '../../../src/core/pacing.js';
import { claimRow, hasLabels, type TaskRow } from '../../../src/storage/port/store-parts.js';
import type { ClaimRequest, GroupQuery, TaskStore } from '../../../src/storage/port/task-store.js';
import { compareText, headsOfGroups, pickInTurn } from './claim-order.js';
import { isDue, type MemoryQueue, type MemoryRow } from './memory-rows.js';

/** Claims tasks among `rows`, which are those of the queue. */
export function claimRows(
  queue: MemoryQueue,
  rows: readonly MemoryRow[],
  request: ClaimRequest,
): MemoryRow[] {
  const { now, newToken, nodeId, leaseExpiresAt, dispatchPerSecond } = request;
  const inFlight = rows.filter((row) => row.status === 'IN_FLIGHT').length;
  const limit = Math.min(
    request.limit,
    request.maxInFlight - inFlight,
    mayStart(queue.starts, now, dispatchPerSecond),
  );
  const free = request.fifoGroups ? headsOfGroups(rows) : new Set<TaskRow>(rows);
  const due = rows.filter((row) => isDue(row, now) && free.has(row) && isWanted(row, request));
  const { maxPerGroup = 0 } = request;
  const running = rows.filter((row) => row.status === 'IN_FLIGHT');
  const within = due.filter((row) => {
    if (maxPerGroup === 0 || row.groupKey === null || request.fifoGroups) return true;
    const isAlike = (other: MemoryRow) => other.groupKey === row.groupKey;
    const earlier = due.filter((other) => isAlike(other) && isBefore(other, row)).length;
    return running.filter(isAlike).length + earlier < maxPerGroup;
  });
  const picked = pickInTurn(within, queue.turns, limit) as MemoryRow[];
  for (const row of picked) claimRow(row, { token: newToken(), now, nodeId, leaseExpiresAt });
  if (dispatchPerSecond > 0 && picked.length > 0) {
    queue.starts = withStarts(queue.starts, now, picked.length, dispatchPerSecond);
  }
  return picked;
}

/** In the order of claims within a group. */
function isBefore(a: MemoryRow, b: MemoryRow): boolean {
  return (b.priority - a.priority || a.dueAt! - b.dueAt! || compareText(a.id, b.id)) < 0;
}

function isWanted(
  { handlerRef, ...row }: MemoryRow,
  { handlers, excludedHandlers, labels }: ClaimRequest,
): boolean {
  if (excludedHandlers?.includes(handlerRef) || !hasLabels(row, labels)) return false;
  return !handlers || handlers.includes(handlerRef);
}

interface ScanRequest {
  now: number;
  limit: number;
}

export function endedLeaseRows(
  rows: readonly MemoryRow[],
  { now, limit }: ScanRequest,
): MemoryRow[] {
  const ended = rows.filter((row) => row.lease !== null && row.lease.expiresAt <= now);
  const order = (a: TaskRow, b: TaskRow) =>
    a.lease!.expiresAt - b.lease!.expiresAt || compareText(a.id, b.id);
  return ended.toSorted(order).slice(0, limit);
}

export function expiredRows(rows: readonly MemoryRow[], { now, limit }: ScanRequest): MemoryRow[] {
  const expired = rows.filter(
    (row) => row.status === 'PENDING' && row.expiresAt !== null && row.expiresAt <= now,
  );
  const order = (a: TaskRow, b: TaskRow) => a.expiresAt! - b.expiresAt! || compareText(a.id, b.id);
  return expired.toSorted(order).slice(0, limit);
}

export function nextEvents(
  rows: Iterable<MemoryRow>,
  isPaused: (queue: string) => boolean,
): Awaited<ReturnType<TaskStore['nextEventAt']>> {
  const dueByQueue = new Map<string, number>();
  let upkeepAt = Infinity;
  for (const row of rows) {
    if (row.lease) upkeepAt = Math.min(upkeepAt, row.lease.expiresAt);
    if (row.status !== 'PENDING') continue;
    upkeepAt = Math.min(upkeepAt, row.expiresAt ?? Infinity);
    if (isPaused(row.queue)) continue;
    if (row.dueAt! >= never) continue;
    dueByQueue.set(row.queue, Math.min(dueByQueue.get(row.queue) ?? Infinity, row.dueAt!));
  }
  return { dueByQueue, upkeepAt: upkeepAt === Infinity ? undefined : upkeepAt };
}

export function isGroupBusy(
  rows: readonly MemoryRow[],
  { groupKey, id, maxPerGroup }: GroupQuery,
): boolean {
  if (maxPerGroup) {
    const running = rows.filter((row) => row.groupKey === groupKey && row.status === 'IN_FLIGHT');
    return running.length >= maxPerGroup;
  }
  return rows.some(
    (row) =>
      row.groupKey === groupKey &&
      row.id !== id &&
      (row.status === 'IN_FLIGHT' || (row.status === 'PENDING' && row.started)),
  );
}
