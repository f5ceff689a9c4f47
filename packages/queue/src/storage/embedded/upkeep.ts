import type { Database, RowReader, RowWriter } from '@millrace/engine';
import { isEnded } from '../../core/flow.js';
import type { Task, WholeTask } from '../../core/task.js';
import { expireRow, toTask } from '../port/store-parts.js';
import { type TaskStore, tombstoneMs } from '../port/task-store.js';
import { endedLeaseIds, idsIn, listedAt, removeEndedKeys } from './indexes.js';
import {
  after,
  idKey,
  idLength,
  idOf,
  kinds,
  nameKey,
  queueKey,
  queueTimeKey,
  timeKey,
  timeOf,
} from './keys.js';
import { RecentTasks, Step, type StepQueue } from './step.js';
import { decodeTask, isTombstone, showWhole, type StoredTask } from './task-codec.js';

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
    const { lastError: error } = task.row;
    step.note('dead', task, request.now, { error, deadReason: 'EXPIRED' });
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
    limit: maxRead,
  };
  const old: StoredTask[] = [];
  for (const { key } of step.rows.range(range)) {
    const task = existing(step, idOf(key));
    if (task.row.options?.retainMs === undefined && isReadByParent(step, task)) old.push(task);
    if (old.length >= request.limit) break;
  }
  for (const task of old) {
    step.leaveDead(task);
    step.replaceByTombstone(task, request.now);
  }
  return old.length;
}

/** Some are skipped: dead tasks with a retention of their own, and children of open tasks. */
const maxRead = 10_000;

/** A child stays while its parent is open, which may not have read the result yet. */
function isReadByParent(step: Step, { row }: StoredTask): boolean {
  const parentId = row.flow?.parentId;
  const parent = parentId === undefined ? undefined : step.find(parentId, true);
  return !parent || isTombstone(parent) || isEnded(parent.row.status);
}

export function hasRetained(rows: RowReader, now: number): boolean {
  const range = { start: Buffer.of(kinds.retained), end: timeKey(kinds.retained, now + 1) };
  for (const _row of rows.range({ ...range, limit: 1 })) return true;
  return false;
}

export function deleteRetained(step: Step, { now, limit }: { now: number; limit: number }): number {
  const start = Buffer.of(kinds.retained);
  const range = { start, end: timeKey(kinds.retained, now + 1), limit: maxRead };
  const over: { key: Buffer; task: StoredTask | undefined }[] = [];
  for (const { key } of step.rows.range(range)) {
    const task = step.task(idOf(key)) ?? taskOfDeletedQueue(step, idOf(key));
    if (!task || isReadByParent(step, task)) over.push({ key, task });
    if (over.length >= limit) break;
  }
  for (const { key, task } of over) {
    step.rows.remove(key);
    if (!task) continue;
    if (task.row.status === 'DEAD') step.leaveDead(task);
    step.replaceByTombstone(task, now);
  }
  return over.length;
}

function taskOfDeletedQueue(step: Step, id: string): StoredTask | undefined {
  const bytes = step.rows.get(idKey(kinds.task, id));
  const task = bytes && decodeTask(id, bytes);
  return task && !isTombstone(task) ? task : undefined;
}

function deleteDone(step: Step, queue: StepQueue, request: DeleteFinishedRequest): number {
  const { number } = queue.stored;
  const ended = queueTimeKey(kinds.done, number, request.endedBefore);
  return takeDone(step, number, ended, request.limit, (id) => {
    const task = existing(step, id);
    if (!isReadByParent(step, task)) return undefined;
    return () => step.replaceByTombstone(task, request.now);
  });
}

/**
 * Deletes tasks that SUCCEEDED before the key `end` by what `pick` returns for their ids, and
 * removes them from the index. Undefined: the task stays.
 */
function takeDone(
  step: Step,
  queue: number,
  end: Buffer,
  limit: number,
  pick: (id: string) => (() => void) | undefined,
): number {
  const lists: { key: Buffer; stay: string[] }[] = [];
  const taken: (() => void)[] = [];
  let read = 0;
  for (const { key, value } of step.rows.range({ start: queueKey(kinds.done, queue), end })) {
    if (taken.length >= limit || read >= maxRead) break;
    const before = taken.length;
    const stay: string[] = [];
    for (const id of idsIn(value)) {
      const take = taken.length < limit ? pick(id) : undefined;
      if (take) taken.push(take);
      else stay.push(id);
    }
    read += value.length / idLength;
    if (taken.length > before) lists.push({ key, stay });
  }
  for (const take of taken) take();
  for (const { key, stay } of lists) {
    step.rows.remove(key);
    if (stay.length > 0) step.putDone(queue, timeOf(key), stay);
  }
  return taken.length;
}

/** Deletes some tasks of a deleted queue. True: none is left. */
export function deleteTasksOf(step: Step, queue: number, limit: number): boolean {
  const deletionKey = queueKey(kinds.deletedQueue, queue);
  const deletedAt = step.rows.get(deletionKey);
  if (!deletedAt) return true;
  const end = after(queueKey(kinds.done, queue));
  const taken = takeDone(step, queue, end, limit, (id) => () => {
    const task = taskOfDeletedQueue(step, id);
    if (task) step.replaceByTombstone(task, Number(deletedAt.toString()));
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

function existing(step: Step, id: string): StoredTask {
  const task = step.task(id);
  if (!task) throw new Error(`A row belongs to a missing task: ${id}`);
  return task;
}

/** Progress: the last id that was added to the lists, or `done`. */
const progressKey = nameKey(kinds.meta, 'listed');
const done = Buffer.from('done');
const tasksPerStep = 500;

/** A new store has nothing to add. */
export function markListed(rows: RowWriter): void {
  rows.put(progressKey, done);
}

export function isListed(rows: RowReader): boolean {
  return rows.get(progressKey)?.equals(done) ?? false;
}

/**
 * Adds the tasks of data that 0.1.0 wrote to the lists of tasks. One commit for some tasks at a
 * time, so that the server works meanwhile; it continues after a restart.
 */
export async function listOldTasks(database: Database, isClosed: () => boolean): Promise<void> {
  while (!isClosed() && !database.readRows(isListed)) {
    await database.transact((target) => {
      const step = new Step(target.rows, new RecentTasks());
      listSome(step);
      step.finish();
    });
  }
}

function listSome(step: Step): void {
  const progress = step.rows.get(progressKey);
  const start = progress
    ? Buffer.concat([idKey(kinds.task, progress.toString('latin1')), Buffer.of(0)])
    : Buffer.of(kinds.task);
  const range = { start, end: Buffer.of(kinds.task + 1), limit: tasksPerStep };
  const rows = [...step.rows.range(range)];
  const tasks = rows.flatMap(({ key, value }): StoredTask[] => {
    const task = decodeTask(idOf(key), value);
    if (isTombstone(task)) return [];
    const queue = step.queue(task.row.queue);
    // Tasks of a deleted queue are about to be deleted.
    return queue?.stored.number === task.queueNumber ? [task] : [];
  });
  const listed = new Map<string, Set<string>>();
  for (const task of tasks) {
    const { queueNumber, row } = task;
    const place = `${queueNumber} ${row.createdAt}`;
    if (!listed.has(place)) {
      listed.set(place, new Set(listedAt(step.rows, queueNumber, row.createdAt)));
    }
    // New tasks are in the lists already.
    if (!listed.get(place)!.has(row.id)) step.list(task);
  }
  if (rows.length < tasksPerStep) return markListed(step.rows);
  step.rows.put(progressKey, Buffer.from(idOf(rows.at(-1)!.key), 'latin1'));
}
