import type { InsertResult } from '../../port/task-store.js';
import { bigintArray, textArray } from '../connection/arrays.js';
import type { Queryable } from '../connection/connections.js';
import type { Insert } from './insert.js';
import { findTasks } from '../statements/find-tasks.sql.js';
import * as statements from '../statements/unique-keys.sql.js';
import { statusName, toTask, toTombstone, type FoundColumns } from './task-columns.js';

/** A key may become free between two statements. */
const maxTries = 5;

interface HolderColumns {
  position: number;
  id: string;
  handler_ref: string;
  status: number | null;
}

type Keyed = Insert & { task: { uniqueKey: string } };

export function hasKey(insert: Insert): insert is Keyed {
  return typeof insert.task.uniqueKey === 'string';
}

/** Tasks take their keys, which must differ. Returns the results of those whose key is held. */
export async function takeKeys(
  db: Queryable,
  inserts: readonly Keyed[],
): Promise<Map<Insert, InsertResult>> {
  const held = new Map<Insert, InsertResult>();
  let left = inserts;
  for (let tries = 0; left.length > 0 && tries < maxTries; tries++) {
    const now = Math.min(...left.map((insert) => insert.now));
    const rows = await db.query<{ id: string }>(statements.takeKeys, [
      textArray(left.map(({ task }) => task.queue)),
      textArray(left.map(({ task }) => task.uniqueKey)),
      textArray(left.map(({ task }) => task.id)),
      bigintArray(left.map(({ task }) => task.uniqueUntil ?? null)),
      textArray(left.map(({ task }) => task.handlerRef)),
      now,
    ]);
    const taken = new Set(rows.map(({ id }) => id));
    const missed = left.filter(({ task }) => !taken.has(task.id));
    const found = await holders(db, missed);
    for (const [insert, result] of found) held.set(insert, result);
    left = missed.filter((insert) => !found.has(insert));
  }
  return held;
}

async function holders(
  db: Queryable,
  inserts: readonly Keyed[],
): Promise<Map<Insert, InsertResult>> {
  const results = new Map<Insert, InsertResult>();
  if (inserts.length === 0) return results;
  const rows = await db.query<HolderColumns>(statements.keyHolders, [
    textArray(inserts.map(({ task }) => task.queue)),
    textArray(inserts.map(({ task }) => task.uniqueKey)),
  ]);
  const found = await db.query<FoundColumns>(findTasks, [rows.map(({ id }) => id)]);
  const tasks = new Map(found.map((row) => [row.id, row]));
  for (const { position, id, handler_ref: handlerRef, status } of rows) {
    const insert = inserts[position - 1]!;
    const row = tasks.get(id);
    if (row && row.status !== null) results.set(insert, { kind: 'existing', task: toTask(row) });
    else if (row) results.set(insert, { kind: 'purged', tombstone: toTombstone(row) });
    else {
      const { queue } = insert.task;
      const left = { id, queue, handlerRef, status: statusName(status ?? 3), purgedAt: insert.now };
      results.set(insert, { kind: 'purged', tombstone: left });
    }
  }
  // A queue that does not exist has no keys: the insert says so.
  const queues = new Set(rows.map(({ position }) => position));
  if (queues.size === 0 && (await isUnknown(db, inserts[0]!.task.queue))) {
    for (const insert of inserts) results.set(insert, { kind: 'queue_not_found' });
  }
  return results;
}

async function isUnknown(db: Queryable, queue: string): Promise<boolean> {
  return (await db.query(statements.knownQueue, [queue])).length === 0;
}

/** After the insert: notes the keys of stored tasks, and gives those of the others back. */
export async function finishKeys(
  db: Queryable,
  inserts: readonly Keyed[],
  results: readonly InsertResult[],
): Promise<void> {
  const stored = inserts.filter((_, i) => results[i]!.kind === 'stored');
  const others = inserts.filter((_, i) => results[i]!.kind !== 'stored');
  if (stored.length > 0) {
    await db.query(statements.noteKeys, [
      textArray(stored.map(({ task }) => task.id)),
      textArray(stored.map(({ task }) => task.uniqueKey)),
      bigintArray(stored.map(({ task }) => task.uniqueUntil ?? null)),
    ]);
  }
  if (others.length > 0) {
    await db.query(statements.giveKeysBack, [others.map(({ task }) => task.id)]);
  }
}

export interface RedrivenColumns {
  id: string;
  queue: string;
  handler_ref: string;
  unique_key: string | null;
  unique_until: number | null;
}

/** Redriven tasks keep their keys only if these are free. The rows are in the order of ids given. */
export async function holdKeysAgain(
  db: Queryable,
  rows: readonly RedrivenColumns[],
  now: number,
): Promise<void> {
  const lost: string[] = [];
  for (const row of rows) {
    if (row.unique_key === null) continue;
    const isOver = row.unique_until !== null && row.unique_until <= now;
    if (isOver || !(await holdAgain(db, row, now))) lost.push(row.id);
  }
  if (lost.length > 0) await db.query(statements.dropKeys, [lost]);
}

async function holdAgain(db: Queryable, row: RedrivenColumns, now: number): Promise<boolean> {
  const { id, queue, unique_key: key, unique_until: until, handler_ref: handlerRef } = row;
  const values = [[queue], [key], [id], [until], [handlerRef], now];
  const taken = await db.query(statements.takeKeys, values);
  if (taken.length > 0) return true;
  const [holder] = await db.query<HolderColumns>(statements.keyHolders, [[queue], [key]]);
  return holder?.id === id;
}
