import type { Database, RowReader, RowWriter } from '@millrace/engine';
import { idKey, idOf, kinds, nameKey } from './keys.js';
import { listedAt } from './listings.js';
import { RecentTasks } from './recent-tasks.js';
import { Step } from './step.js';
import { decodeTask, isTombstone, type StoredTask } from './task-codec.js';

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
