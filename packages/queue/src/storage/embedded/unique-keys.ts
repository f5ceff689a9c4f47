import type { RowReader, RowWriter } from '@millrace/engine';
import type { TaskStatus } from '../../core/task.js';
import type { TaskRow } from '../port/task-row.js';
import { kinds, timeKey } from './keys.js';
import { encodeJson } from './queue-rows.js';

/** Who holds a unique key. */
export interface KeyHolder {
  id: string;
  /** Null: until the task ends. */
  until: number | null;
  handlerRef: string;
  /** Last status of the task, if it was deleted. */
  status: TaskStatus | null;
}

type StoredHolder = [
  id: string,
  until: number | null,
  handlerRef: string,
  status: TaskStatus | null,
];

const noBytes = Buffer.alloc(0);
const timeLength = 6;

/** The holder of a key; undefined if it is free. */
export function holderOf(
  rows: RowReader,
  queue: number,
  key: string,
  now: number,
): KeyHolder | undefined {
  const holder = read(rows, uniqueKey(queue, key));
  return holder && (holder.until === null || holder.until > now) ? holder : undefined;
}

/** The task holds its key from now on. */
export function holdKey(rows: RowWriter, queue: number, row: TaskRow): void {
  const { id, uniqueKey: key, uniqueUntil: until, handlerRef } = row;
  if (key === null) return;
  put(rows, uniqueKey(queue, key), { id, until, handlerRef, status: null });
  if (until !== null) rows.put(uniqueEndKey(until, queue, key), noBytes);
}

/** The task has ended: a key without a time is free. */
export function releaseKey(rows: RowWriter, queue: number, row: TaskRow): void {
  if (row.uniqueKey === null || row.uniqueUntil !== null) return;
  const key = uniqueKey(queue, row.uniqueKey);
  if (read(rows, key)?.id === row.id) rows.remove(key);
}

/** The task is deleted, but a key with a time is still held. */
export function keepKeyOfDeleted(rows: RowWriter, queue: number, row: TaskRow): void {
  if (row.uniqueKey === null || row.uniqueUntil === null) return;
  const key = uniqueKey(queue, row.uniqueKey);
  const holder = read(rows, key);
  if (holder?.id === row.id) put(rows, key, { ...holder, status: row.status });
}

/** A redriven task keeps its key only if it is free. */
export function holdKeyAgain(rows: RowWriter, queue: number, row: TaskRow, now: number): void {
  if (row.uniqueKey === null) return;
  const holder = holderOf(rows, queue, row.uniqueKey, now);
  if (holder?.id === row.id) return;
  const isOver = row.uniqueUntil !== null && row.uniqueUntil <= now;
  if (holder || isOver) {
    row.uniqueKey = null;
    row.uniqueUntil = null;
  } else holdKey(rows, queue, row);
}

export function hasEndedKeys(rows: RowReader, now: number): boolean {
  const range = { start: Buffer.of(kinds.uniqueEnd), end: timeKey(kinds.uniqueEnd, now + 1) };
  for (const _row of rows.range({ ...range, limit: 1 })) return true;
  return false;
}

/** Removes keys whose time is over. */
export function removeEndedKeys(rows: RowWriter, now: number, limit: number): void {
  const range = {
    start: Buffer.of(kinds.uniqueEnd),
    end: timeKey(kinds.uniqueEnd, now + 1),
    limit,
  };
  const ended = Array.from(rows.range(range), ({ key }) => key);
  for (const end of ended) {
    rows.remove(end);
    const until = end.readUIntBE(1, timeLength);
    const key = Buffer.concat([Buffer.of(kinds.unique), end.subarray(1 + timeLength)]);
    if (read(rows, key)?.until === until) rows.remove(key);
  }
}

function read(rows: RowReader, key: Buffer): KeyHolder | undefined {
  const bytes = rows.get(key);
  if (!bytes) return undefined;
  const [id, until, handlerRef, status] = JSON.parse(bytes.toString()) as StoredHolder;
  return { id, until, handlerRef, status };
}

function put(rows: RowWriter, key: Buffer, { id, until, handlerRef, status }: KeyHolder): void {
  rows.put(key, encodeJson([id, until, handlerRef, status] satisfies StoredHolder));
}

function uniqueKey(queue: number, key: string): Buffer {
  return Buffer.concat([Buffer.of(kinds.unique), tailOf(queue, key)]);
}

function uniqueEndKey(until: number, queue: number, key: string): Buffer {
  return Buffer.concat([timeKey(kinds.uniqueEnd, until), tailOf(queue, key)]);
}

function tailOf(queue: number, key: string): Buffer {
  const number = Buffer.allocUnsafe(4);
  number.writeUInt32BE(queue, 0);
  return Buffer.concat([number, Buffer.from(key)]);
}
