import type { RowReader } from '@millrace/engine';
import { DeadGroups, matchesDeadFilter, pageBytes, redriveRow } from '../port/store-parts.js';
import type { DeadChange, DeadChangeResult, DeadPage, DeadTaskQuery } from '../port/task-store.js';
import { decodeTask, factsOf, isTombstone, showWhole, type StoredTask } from './task-codec.js';
import { after, idKey, idOf, keyBefore, kinds, queueKey, queueTimeKey, timeOf } from './keys.js';
import { tasksRedriven } from '../port/flow-graph.js';
import { runNow } from '../port/flow-program.js';
import { flowIo } from './flows.js';
import { putRow, readRow } from './queue-acts.js';
import type { Step } from './step.js';
import { holdKeyAgain } from './indexes.js';

/** Rows read in one slice, before other work runs. */
const sliceRows = 2_000;
/** Rows read for one page; a filter that matches little gets a short page and a cursor. */
const maxPageRows = 100_000;

/** Reads one page in slices. */
export class DeadPageReader {
  readonly page: DeadPage = { tasks: [], next: undefined };
  #at: Buffer;
  readonly #end: Buffer;
  #bytes = 0;
  #readRows = 0;

  constructor(
    queue: number,
    private readonly query: DeadTaskQuery,
  ) {
    const { start, end } = boundsOf(queue, query);
    this.#at = start;
    this.#end = end;
  }

  /** Reads the next slice. True: the page is complete. */
  readSlice(rows: RowReader): boolean {
    const reverse = this.query.order === 'newest_first';
    const range = { start: this.#at, end: this.#end, reverse, limit: sliceRows };
    let seen = 0;
    let last: Buffer | undefined;
    for (const row of rows.range(range)) {
      const { key } = row;
      seen++;
      const isWanted = matchesDeadFilter(factsOf(row), this.query.filter);
      if (isWanted && !this.#add(rows, idOf(key))) return true;
      this.#at = reverse ? keyBefore(key) : Buffer.concat([key, Buffer.of(0)]);
      last = key;
    }
    this.#readRows += seen;
    if (seen < sliceRows) return true;
    if (this.#readRows < maxPageRows) return false;
    this.page.next = { deadAt: timeOf(last!), id: idOf(last!) };
    return true;
  }

  /** False: the page is full, and the task starts the next one. */
  #add(rows: RowReader, id: string): boolean {
    const { tasks } = this.page;
    const last = tasks.at(-1);
    if (last && tasks.length >= this.query.limit) {
      this.page.next = { deadAt: last.deadAt!, id: last.id };
      return false;
    }
    const task = showWhole(rows, stored(rows, id));
    this.#bytes += pageBytes(task);
    if (last && this.#bytes > this.query.maxBytes) {
      this.page.next = { deadAt: last.deadAt!, id: last.id };
      return false;
    }
    tasks.push(task);
    return true;
  }
}

/** Groups all failures of a queue, in slices. */
export class DeadGroupsReader {
  readonly groups = new DeadGroups();
  #at: Buffer;
  readonly #end: Buffer;

  constructor(queue: number) {
    this.#at = queueKey(kinds.dead, queue);
    this.#end = after(this.#at);
  }

  readSlice(rows: RowReader): boolean {
    let seen = 0;
    const range = { start: this.#at, end: this.#end, limit: sliceRows };
    for (const row of rows.range(range)) {
      const { key } = row;
      seen++;
      this.groups.add(idOf(key), factsOf(row));
      this.#at = Buffer.concat([key, Buffer.of(0)]);
    }
    return seen < sliceRows;
  }
}

export function actOnDead(step: Step, change: DeadChange): DeadChangeResult {
  const { action, queue, row, now, by, selector } = change;
  const isThere = step.queue(queue) !== undefined;
  if (row && (!isThere || readRow(step, row)?.revision !== row.ifRevision)) {
    return { kind: 'conflict', ids: [] };
  }
  if (!isThere) return { kind: 'done', ids: [], dependents: 0, row: undefined };
  const ids = action === 'redrive' ? redrive(step, change) : purge(step, change);
  const dependents = action === 'redrive' ? redriveFlows(step, ids, change) : 0;
  if (row) {
    const value = row.value(ids.length);
    return { kind: 'done', ids, dependents, row: putRow(step, { ...row, value }, now) };
  }
  step.record({ at: now, principal: by, action, queue, selector, count: ids.length });
  return { kind: 'done', ids, dependents, row: undefined };
}

/** Returns how many tasks came back with the redriven ones. */
function redriveFlows(step: Step, ids: readonly string[], change: DeadChange): number {
  const inFlow = ids.filter((id) => step.task(id)?.row.flow);
  if (inFlow.length === 0) return 0;
  const { now, withDependents = true, fromStep } = change;
  const program = tasksRedriven({ ids: inFlow, now, withDependents, fromStep });
  return runNow(program, flowIo(step, now));
}

function redrive(step: Step, change: DeadChange): string[] {
  const changed: string[] = [];
  for (const [index, id] of change.ids.entries()) {
    const task = deadIn(step, id, change);
    if (!task) continue;
    step.leaveDead(task);
    redriveRow(task.row, change.dueAt?.(index) ?? change.now, change.now);
    holdKeyAgain(step.rows, task.queueNumber, task.row, change.now);
    step.enter(task, change.now);
    step.store(task);
    changed.push(id);
  }
  return changed;
}

function purge(step: Step, change: DeadChange): string[] {
  const purged: string[] = [];
  for (const id of change.ids) {
    const task = deadIn(step, id, change);
    if (!task) continue;
    step.leaveDead(task);
    step.replaceByTombstone(task, change.now);
    purged.push(id);
  }
  return purged;
}

function deadIn(step: Step, id: string, change: DeadChange): StoredTask | undefined {
  const task = step.task(id);
  if (!task || task.row.queue !== change.queue || task.row.status !== 'DEAD') return undefined;
  return task.row.deadAt! <= change.diedBy ? task : undefined;
}

function boundsOf(queue: number, query: DeadTaskQuery): { start: Buffer; end: Buffer } {
  const { after: place, filter, order } = query;
  const low = queueTimeKey(kinds.dead, queue, filter.diedFrom ?? 0);
  const high =
    filter.diedBefore === undefined
      ? after(queueKey(kinds.dead, queue))
      : queueTimeKey(kinds.dead, queue, filter.diedBefore);
  const seen = place && queueTimeKey(kinds.dead, queue, place.deadAt, place.id);
  if (order === 'oldest_first') {
    const beyond = seen && Buffer.concat([seen, Buffer.of(0)]);
    return { start: beyond && beyond.compare(low) > 0 ? beyond : low, end: high };
  }
  // Bounds of a reverse range: the start is inclusive.
  const start = seen && seen.compare(high) < 0 ? keyBefore(seen) : keyBefore(high);
  return { start, end: keyBefore(low) };
}

function stored(rows: RowReader, id: string): StoredTask {
  const bytes = rows.get(idKey(kinds.task, id));
  const task = bytes && decodeTask(id, bytes);
  if (!task || isTombstone(task)) throw new Error(`A dead task is missing: ${id}`);
  return task;
}
