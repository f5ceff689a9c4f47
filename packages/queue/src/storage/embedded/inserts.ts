import { newRow, toTask } from '../port/task-row.js';
import { tombstoneMs, type InsertResult, type NewTask } from '../port/task-store.js';
import { idKey, kinds, timeKey } from './keys.js';
import { holderOf, holdKey, type KeyHolder } from './unique-keys.js';
import type { Step } from './step.js';
import { encodeFixed, isTombstone, maxInlineBytes } from './task-codec.js';

export function insertTask(step: Step, task: NewTask, now: number): InsertResult {
  const queue = step.queue(task.queue);
  if (!queue) return { kind: 'queue_not_found' };
  const found = step.find(task.id);
  if (found && !isTombstone(found)) return { kind: 'existing', task: toTask(found.row) };
  if (found && found.purgedAt > now - tombstoneMs) return { kind: 'purged', tombstone: found };
  if (task.uniqueKey) {
    const holder = holderOf(step.rows, queue.stored.number, task.uniqueKey, now);
    if (holder) return heldBy(step, holder, task.queue, now);
  }
  if (task.maxPending > 0 && queue.counters.pending >= task.maxPending) {
    return { kind: 'queue_full' };
  }
  if (found) step.rows.remove(timeKey(kinds.tombstone, found.purgedAt, found.id));
  const isApart = task.payload.length > maxInlineBytes;
  const stored = {
    row: newRow(task, now),
    queueNumber: queue.stored.number,
    attemptsApart: 0,
    lastAttempt: null,
    leaseList: '',
    hasResult: false,
    payload: isApart ? undefined : task.payload,
    fixed: encodeFixed(task, queue.stored.number, now),
  };
  if (isApart) step.rows.put(idKey(kinds.payload, task.id), Buffer.from(task.payload));
  step.store(stored);
  step.enter(stored, now);
  step.list(stored);
  holdKey(step.rows, queue.stored.number, stored.row);
  return { kind: 'stored', task: toTask(stored.row) };
}

/** The result of a submit whose key is held: the task, or what is left of it. */
function heldBy(step: Step, holder: KeyHolder, queue: string, now: number): InsertResult {
  const found = step.find(holder.id);
  if (found && !isTombstone(found)) return { kind: 'existing', task: toTask(found.row) };
  if (found) return { kind: 'purged', tombstone: found };
  const { id, handlerRef, status } = holder;
  const tombstone = { id, queue, handlerRef, status: status ?? 'SUCCEEDED', purgedAt: now };
  return { kind: 'purged', tombstone };
}
