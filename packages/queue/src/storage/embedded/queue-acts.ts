import type { RowReader } from '@millrace/engine';
import { historyRowKey } from '../../core/history.js';
import {
  hasConflict,
  keyAfter,
  nextRow,
  type QueuePut,
  type QueuePutResult,
  type Row,
  type RowBatch,
  type RowBatchResult,
  type RowKey,
  type RowPut,
  type RowRange,
  type RowRemoval,
  type RowTable,
  type RowValue,
} from '../port/task-store.js';
import { after, keyBefore, kinds, nameKey, queueKey } from './keys.js';
import { encodeJson, readQueue, type StoredQueue, toQueue } from './queue-state.js';
import { insertFlow } from '../port/flow-graph.js';
import { runNow } from '../port/flow-program.js';
import { flowIo } from './flows.js';
import type { Step } from './step.js';
import { insertTask } from './transitions.js';

export function putQueue(step: Step, put: QueuePut, incarnation: string): QueuePutResult {
  const { queue: name, config, ifVersion, now, by } = put;
  const before = step.queue(name)?.stored;
  if (ifVersion !== undefined && ifVersion !== (before?.version ?? 0)) {
    return { kind: 'version_mismatch', queue: before && toQueue(before) };
  }
  const queue: StoredQueue = {
    name,
    config,
    paused: before?.paused ?? false,
    version: (before?.version ?? 0) + 1,
    incarnation: before?.incarnation ?? incarnation,
    createdAt: before?.createdAt ?? now,
    updatedAt: now,
    number: before?.number ?? newNumber(step),
  };
  step.rows.put(nameKey(kinds.queue, name), encodeJson(queue));
  step.record(act('config_write', put.queue, now, by));
  return { kind: 'written', queue: toQueue(queue), created: !before };
}

export interface QueueAct {
  queue: string;
  now: number;
  by: string;
}

export function setPaused(step: Step, change: QueueAct & { paused: boolean }): boolean {
  const queue = step.queue(change.queue);
  if (!queue) return false;
  if (queue.stored.paused !== change.paused) {
    queue.stored = { ...queue.stored, paused: change.paused };
    step.rows.put(nameKey(kinds.queue, change.queue), encodeJson(queue.stored));
  }
  step.record(act(change.paused ? 'pause' : 'resume', change.queue, change.now, change.by));
  return true;
}

/** Returns the number of the deleted queue, whose tasks are still to be deleted. */
export function deleteQueue(step: Step, change: QueueAct): number | 'not_empty' | 'not_found' {
  const queue = step.queue(change.queue);
  if (!queue) return 'not_found';
  const { pending, inFlight, dead } = queue.counters;
  if (pending + inFlight + dead > 0) return 'not_empty';
  const { number } = queue.stored;
  step.rows.remove(nameKey(kinds.queue, change.queue));
  step.rows.remove(queueKey(kinds.counters, number));
  removeRowsOf(step, number);
  step.rows.put(queueKey(kinds.deletedQueue, number), Buffer.from(String(change.now)));
  step.drop(change.queue);
  step.record(act('delete', change.queue, change.now, change.by));
  return number;
}

function act(
  action: 'config_write' | 'pause' | 'resume' | 'delete',
  queue: string,
  at: number,
  principal: string,
) {
  return { at, principal, action, queue, selector: null, count: null };
}

function newNumber(step: Step): number {
  const key = nameKey(kinds.meta, 'queues');
  const number = Number(step.rows.get(key)?.toString() ?? 0) + 1;
  step.rows.put(key, Buffer.from(String(number)));
  return number;
}

interface StoredRow {
  /** The key has only its number. */
  queue: string;
  state: RowValue;
  revision: number;
  createdAt: number;
}

/** Part of the key: never change a number. Tables without one hold values alone, see below. */
const tableNumbers: Partial<Record<RowTable, number>> = {
  schedule: 1,
  job: 2,
  worker: 3,
  breaker: 4,
};
/** Keys of the history: `queue | step | time | instance`. */
const history = { prefix: 5, time: 7, instance: 13 };

export function listRows(rows: RowReader, range: RowRange): Row[] {
  const { table, queue, key, from = key ?? '', isReverse, limit = Infinity } = range;
  const before = key === undefined ? range.before : keyAfter(key);
  const number = queue === undefined ? undefined : readQueue(rows, queue)?.number;
  if (queue !== undefined && number === undefined) return [];
  const found: Row[] = [];
  const bounds = number === undefined ? allOf(table) : boundsOf(table, number, from, before);
  const { start, end } = bounds;
  const scanned = isReverse ? { start: keyBefore(end), end: keyBefore(start) } : bounds;
  for (const row of rows.range({ ...scanned, reverse: isReverse ?? false })) {
    if (found.length >= limit) break;
    const shown = decode(table, queue, row);
    if (shown && (key === undefined || shown.key === key)) found.push(shown);
  }
  if (range.hasBodies) for (const row of found) row.body = readBody(rows, row);
  // Keys are in the order of the queues' numbers.
  return queue === undefined
    ? found.toSorted((a, b) => (a.queue < b.queue ? -1 : a.queue > b.queue ? 1 : 0))
    : found;
}

export function writeRows(step: Step, batch: RowBatch): RowBatchResult {
  const { puts = [], removals = [], tasks = [], audit, now } = batch;
  for (const put of puts) {
    const isThere = step.queue(put.queue) !== undefined;
    if (!isThere && put.ifRevision !== undefined) return { kind: 'queue_not_found' };
    if (isThere && hasConflict(put, readRow(step, put))) return { kind: 'conflict' };
  }
  const written = puts.flatMap((put) => putRow(step, put, now) ?? []);
  let removed = 0;
  for (const removal of removals) removed += removeRows(step, removal);
  const inserted = tasks.some(({ flow }) => flow)
    ? runNow(insertFlow(tasks, now), flowIo(step, now))
    : tasks.map((task) => insertTask(step, task, now));
  if (audit) step.record({ ...audit, at: now });
  return { kind: 'written', rows: written, removed, inserted };
}

export function readRow(step: Step, { table, queue, key }: RowKey): Row | undefined {
  const number = step.queue(queue)!.stored.number;
  const bytes = step.rows.get(rowKey(table, number, key));
  return bytes && decode(table, queue, { key: rowKey(table, number, key), value: bytes });
}

/** Undefined: there was nothing to write. */
export function putRow(step: Step, put: RowPut, now: number): Row | undefined {
  if (!step.queue(put.queue)) return undefined;
  const row = nextRow(put, readRow(step, put), now);
  if (row) storeRow(step, row);
  return row;
}

/** Writes a row as it is. */
export function storeRow(step: Step, { table, queue, key, ...row }: Row): void {
  const { number } = step.queue(queue)!.stored;
  const { value: state, body, revision, createdAt } = row;
  const stored: StoredRow = { queue, state, revision, createdAt };
  const bytes = encodeJson(tableNumbers[table] ? stored : state);
  step.rows.put(rowKey(table, number, key), bytes);
  if (body) step.rows.put(bodyKey(table, number, key), encodeJson(body));
}

/** Everything that a queue has in rows. */
export function removeRowsOf(step: Step, queue: number): void {
  for (const kind of [kinds.record, kinds.recordState, kinds.history, kinds.historyTotals]) {
    const start = queueKey(kind, queue);
    const keys = Array.from(step.rows.range({ start, end: after(start) }), ({ key }) => key);
    for (const key of keys) step.rows.remove(key);
  }
}

function removeRows(step: Step, { table, queue, from, before }: RowRemoval): number {
  const number = step.queue(queue)?.stored.number;
  if (number === undefined) return 0;
  const range = boundsOf(table, number, from, before);
  const keys = Array.from(step.rows.range(range), ({ key }) => key);
  for (const key of keys) {
    step.rows.remove(key);
    if (tableNumbers[table]) step.rows.remove(bodyKey(table, number, textOf(table, key)));
  }
  return keys.length;
}

function readBody(rows: RowReader, { table, queue, key }: Row): RowValue | undefined {
  const bytes = rows.get(bodyKey(table, readQueue(rows, queue)!.number, key));
  return bytes && (JSON.parse(bytes.toString()) as RowValue);
}

/** Undefined: the row is of another table. */
function decode(
  table: RowTable,
  queue: string | undefined,
  { key, value }: { key: Buffer; value: Buffer },
): Row | undefined {
  const parsed = JSON.parse(value.toString()) as StoredRow;
  const name = textOf(table, key);
  if (!tableNumbers[table]) {
    return { table, queue: queue!, key: name, value: parsed, revision: 1, createdAt: 0 };
  }
  if (key[5] !== tableNumbers[table]) return undefined;
  const { state, ...rest } = parsed;
  return { table, key: name, value: state, ...rest };
}

function boundsOf(table: RowTable, queue: number, from: string, before: string | undefined) {
  const start = rowKey(table, queue, from);
  const whole = tableNumbers[table] ? rowKey(table, queue, '') : start.subarray(0, history.prefix);
  const end = before === undefined ? after(whole) : rowKey(table, queue, before);
  return { start, end };
}

/** Of all queues; the rows of other tables are among them. */
function allOf(table: RowTable) {
  if (!tableNumbers[table]) throw new Error(`${table} is listed by queue`);
  return { start: Buffer.of(kinds.recordState), end: Buffer.of(kinds.recordState + 1) };
}

function rowKey(table: RowTable, queue: number, key: string): Buffer {
  if (table === 'totals') return queueKey(kinds.historyTotals, queue);
  if (table === 'history') return historyKey(queue, key);
  return namedKey(kinds.recordState, table, queue, key);
}

function bodyKey(table: RowTable, queue: number, key: string): Buffer {
  return namedKey(kinds.record, table, queue, key);
}

function namedKey(kind: 40 | 41, table: RowTable, queue: number, key: string): Buffer {
  const number = Buffer.of(tableNumbers[table]!);
  return Buffer.concat([queueKey(kind, queue), number, Buffer.from(key)]);
}

/** From `step time instance`, or the beginning of it. */
function historyKey(queue: number, text: string): Buffer {
  const [step = 0, time = 0, instance = ''] = text.split(' ');
  const key = Buffer.alloc(history.instance + instance.length);
  queueKey(kinds.history, queue).copy(key);
  key.writeUInt16BE(Number(step), history.prefix);
  key.writeUIntBE(Number(time), history.time, history.instance - history.time);
  key.write(instance, history.instance, 'latin1');
  return key;
}

function textOf(table: RowTable, key: Buffer): string {
  if (table === 'totals') return '';
  if (table !== 'history') return key.toString('utf8', 6);
  const step = key.readUInt16BE(history.prefix);
  const time = key.readUIntBE(history.time, history.instance - history.time);
  return historyRowKey(step, time, key.toString('latin1', history.instance));
}
