import type { RowReader } from '@millrace/engine';
import type { Task, TaskStatus } from '../../core/task.js';
import { toTask } from '../port/task-row.js';
import { after, idKey, idOf, kinds, queueKey } from './keys.js';
import { idsIn } from './leases.js';
import type { Counters } from './queue-rows.js';
import { decodeTask, isTombstone } from './task-codec.js';

/** So few tasks are all read, found by their status and not by their creation time. */
const maxFew = 2_000;
const maxLeases = 10_000;

/** All tasks of a queue in these statuses; undefined if they may be many. */
export function fewTasks(
  rows: RowReader,
  queue: number,
  counters: Counters,
  statuses: readonly TaskStatus[] | undefined,
): Task[] | undefined {
  if (!statuses || statuses.includes('SUCCEEDED')) return undefined;
  const counts = { PENDING: counters.pending, IN_FLIGHT: counters.inFlight, DEAD: counters.dead };
  let total = 0;
  for (const status of new Set(statuses)) total += counts[status as keyof typeof counts];
  if (total > maxFew) return undefined;
  const ids = new Set<string>();
  if (statuses.includes('PENDING')) {
    for (const kind of [kinds.ready, kinds.lined, kinds.scheduled]) addAll(rows, kind, queue, ids);
  }
  if (statuses.includes('DEAD')) addAll(rows, kinds.dead, queue, ids);
  if (statuses.includes('IN_FLIGHT') && counters.inFlight > 0 && !addLeased(rows, ids)) {
    return undefined;
  }
  return [...ids].flatMap((id) => {
    const bytes = rows.get(idKey(kinds.task, id));
    const task = bytes && decodeTask(id, bytes);
    return task && !isTombstone(task) && task.queueNumber === queue ? [toTask(task.row)] : [];
  });
}

function addAll(
  rows: RowReader,
  kind: typeof kinds.ready | typeof kinds.lined | typeof kinds.scheduled | typeof kinds.dead,
  queue: number,
  ids: Set<string>,
): void {
  const start = queueKey(kind, queue);
  for (const { key } of rows.range({ start, end: after(start) })) ids.add(idOf(key));
}

/** Leases are stored by their expiry, for all queues. False: there are many. */
function addLeased(rows: RowReader, ids: Set<string>): boolean {
  let count = 0;
  const range = { start: Buffer.of(kinds.lease), end: Buffer.of(kinds.lease + 1) };
  for (const { value } of rows.range(range)) {
    const leased = idsIn(value);
    count += leased.length;
    if (count > maxLeases) return false;
    for (const id of leased) ids.add(id);
  }
  return true;
}
