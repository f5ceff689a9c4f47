import type { RowReader } from '@millrace/engine';
import type { Task, WholeTask } from '../../core/task.js';
import { expireRow, toTask } from '../port/task-row.js';
import { tombstoneMs, type TaskStore } from '../port/task-store.js';
import {
  after,
  idKey,
  idLength,
  idOf,
  kinds,
  queueKey,
  queueTimeKey,
  timeKey,
  timeOf,
  type Kind,
} from './keys.js';
import { endedLeaseIds, idsIn } from './leases.js';
import type { Step, StepQueue } from './step.js';
import { decodeTask, isTombstone, type StoredTask } from './task-codec.js';
import { removeEndedKeys } from './unique-keys.js';
import { showWhole } from './whole-tasks.js';

export function endedLeases(rows: RowReader, request: { now: number; limit: number }): WholeTask[] {
  return endedLeaseIds(rows, request.now, request.limit).map((id) => {
    const bytes = rows.get(idKey(kinds.task, id));
    const task = bytes && decodeTask(id, bytes);
    if (!task || isTombstone(task)) throw new Error(`A lease belongs to a missing task: ${id}`);
    return showWhole(rows, task);
  });
}

export function expireTasks(step: Step, request: { now: number; limit: number }): Task[] {
  return expiredIds(step.rows, request).map((id) => {
    const task = existing(step, id);
    step.leave(task, { isReady: false });
    expireRow(task.row, request.now);
    step.died(task);
    step.store(task);
    return toTask(task.row);
  });
}

/** The ids of PENDING tasks whose expiry has come. */
function expiredIds(rows: RowReader, { now, limit }: { now: number; limit: number }): string[] {
  const range = { start: Buffer.of(kinds.expiry), end: timeKey(kinds.expiry, now + 1), limit };
  return Array.from(rows.range(range), ({ key }) => idOf(key));
}

type DeleteFinishedRequest = Parameters<TaskStore['deleteFinished']>[0];

export function deleteFinished(step: Step, request: DeleteFinishedRequest): number {
  const queue = step.queue(request.queue);
  if (!queue) return 0;
  return request.status === 'DEAD'
    ? deleteDead(step, queue, request)
    : deleteDone(step, queue, request);
}

function deleteDead(step: Step, queue: StepQueue, request: DeleteFinishedRequest): number {
  const { number } = queue.stored;
  const range = {
    start: queueKey(kinds.dead, number),
    end: queueTimeKey(kinds.dead, number, request.endedBefore),
    limit: request.limit,
  };
  const ids = Array.from(step.rows.range(range), ({ key }) => idOf(key));
  for (const id of ids) {
    const task = existing(step, id);
    step.leaveDead(task);
    step.replaceByTombstone(task, request.now);
  }
  return ids.length;
}

function deleteDone(step: Step, queue: StepQueue, request: DeleteFinishedRequest): number {
  const { number } = queue.stored;
  const ended = queueTimeKey(kinds.done, number, request.endedBefore);
  return takeDone(step, number, ended, request.limit, (id) =>
    step.replaceByTombstone(existing(step, id), request.now),
  );
}

/**
 * Passes ids of tasks that SUCCEEDED before the key `end` to the callback, and removes them from
 * the index.
 */
function takeDone(
  step: Step,
  queue: number,
  end: Buffer,
  limit: number,
  take: (id: string) => void,
): number {
  const lists: { key: Buffer; value: Buffer }[] = [];
  let count = 0;
  for (const list of step.rows.range({ start: queueKey(kinds.done, queue), end })) {
    if (count >= limit) break;
    lists.push(list);
    count += list.value.length / idLength;
  }
  let left = Math.min(count, limit);
  const taken = left;
  for (const { key, value } of lists) {
    const ids = idsIn(value);
    for (const id of ids.splice(0, left)) {
      take(id);
      left--;
    }
    step.rows.remove(key);
    if (ids.length > 0) step.putDone(queue, timeOf(key), ids);
  }
  return taken;
}

/** Deletes some tasks of a deleted queue. True: none is left. */
export function deleteTasksOf(step: Step, queue: number, limit: number): boolean {
  const deletionKey = queueKey(kinds.deletedQueue, queue);
  const deletedAt = step.rows.get(deletionKey);
  if (!deletedAt) return true;
  const end = after(queueKey(kinds.done, queue));
  const taken = takeDone(step, queue, end, limit, (id) => {
    const bytes = step.rows.get(idKey(kinds.task, id));
    const task = bytes && decodeTask(id, bytes);
    if (task && !isTombstone(task)) step.replaceByTombstone(task, Number(deletedAt.toString()));
  });
  if (taken >= limit) return false;
  step.rows.remove(deletionKey);
  return true;
}

export function deleteTombstones(step: Step, { now, limit }: { now: number; limit: number }) {
  removeEndedKeys(step.rows, now, limit);
  const old = { start: Buffer.of(kinds.tombstone), limit };
  const end = timeKey(kinds.tombstone, now - tombstoneMs + 1);
  const keys = Array.from(step.rows.range({ ...old, end }), ({ key }) => key);
  for (const key of keys) {
    step.rows.remove(key);
    step.rows.remove(idKey(kinds.task, idOf(key)));
  }
  return keys.length;
}

/** Time of the first row of a kind that is sorted by time. */
export function firstTime(rows: RowReader, kind: Kind): number | undefined {
  for (const { key } of rows.range({
    start: Buffer.of(kind),
    end: Buffer.of(kind + 1),
    limit: 1,
  })) {
    return timeOf(key);
  }
  return undefined;
}

function existing(step: Step, id: string): StoredTask {
  const task = step.task(id);
  if (!task) throw new Error(`A row belongs to a missing task: ${id}`);
  return task;
}
