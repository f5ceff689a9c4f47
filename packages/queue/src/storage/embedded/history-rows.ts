import type { RowReader } from '@millrace/engine';
import {
  addTotals,
  noTotals,
  type HistoryPoint,
  type HistoryRow,
  type HistoryTotals,
} from '../../core/history.js';
import type { HistoryQuery, HistoryWrite } from '../port/task-store.js';
import { after, kinds, queueKey } from './keys.js';
import { encodeJson, readQueue } from './queue-rows.js';
import type { Step } from './step.js';

const timeLength = 6;
const prefixLength = 7;
/** Rows deleted for a step of a queue in one commit. */
const maxPruned = 200;

export function writeHistory(step: Step, { rows, totals, prune }: HistoryWrite): void {
  const numbers = new Map<string, number>();
  for (const { queue } of totals) {
    const number = step.queue(queue)?.stored.number;
    if (number !== undefined) numbers.set(queue, number);
  }
  for (const { queue, stepS, at, instance, point } of rows) {
    const number = numbers.get(queue);
    if (number === undefined) continue;
    step.rows.put(historyKey(number, stepS, at, instance), encodeJson(point));
  }
  for (const { queue, ...more } of totals) {
    const number = numbers.get(queue);
    if (number === undefined) continue;
    const sum = addTotals(readTotals(step.rows, number), more);
    step.rows.put(queueKey(kinds.historyTotals, number), encodeJson(sum));
  }
  for (const number of numbers.values()) {
    for (const { stepS, before } of prune) pruneStep(step, number, stepS, before);
  }
}

function pruneStep(step: Step, queue: number, stepS: number, before: number): void {
  const range = {
    start: historyKey(queue, stepS, 0),
    end: historyKey(queue, stepS, before),
    limit: maxPruned,
  };
  const keys = Array.from(step.rows.range(range), ({ key }) => key);
  for (const key of keys) step.rows.remove(key);
}

export function readHistory(rows: RowReader, { queue, stepS, from }: HistoryQuery): HistoryRow[] {
  const number = readQueue(rows, queue)?.number;
  if (number === undefined) return [];
  const toRow = ({ key, value }: { key: Buffer; value: Buffer }): HistoryRow => ({
    queue,
    stepS,
    at: key.readUIntBE(prefixLength, timeLength),
    instance: key.toString('latin1', prefixLength + timeLength),
    point: JSON.parse(value.toString()) as HistoryPoint,
  });
  const first = historyKey(number, stepS, 0);
  const start = historyKey(number, stepS, from);
  const found = Array.from(rows.range({ start, end: after(first.subarray(0, 7)) }), toRow);
  // The end of a reverse range is exclusive, and no row begins at 0.
  const earlier = { start, end: first, reverse: true, limit: 2 };
  for (const row of rows.range(earlier)) {
    if (row.key.compare(start) < 0) return [toRow(row), ...found];
  }
  return found;
}

export function readHistoryTotals(rows: RowReader, queue: string): HistoryTotals {
  const number = readQueue(rows, queue)?.number;
  return number === undefined ? noTotals : readTotals(rows, number);
}

function readTotals(rows: RowReader, queue: number): HistoryTotals {
  const bytes = rows.get(queueKey(kinds.historyTotals, queue));
  return bytes ? (JSON.parse(bytes.toString()) as HistoryTotals) : noTotals;
}

function historyKey(queue: number, stepS: number, at: number, instance = ''): Buffer {
  const key = Buffer.alloc(prefixLength + timeLength + instance.length);
  queueKey(kinds.history, queue).copy(key);
  key.writeUInt16BE(stepS, 5);
  key.writeUIntBE(Math.max(0, Math.floor(at)), prefixLength, timeLength);
  key.write(instance, prefixLength + timeLength, 'latin1');
  return key;
}
