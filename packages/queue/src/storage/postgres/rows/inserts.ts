import type { Task } from '../../../core/task.js';
import { newRow, toTask as toNewTask } from '../../port/task-row.js';
import { tombstoneMs, type InsertResult, type NewTask } from '../../port/task-store.js';
import { bigintArray, integerArray, smallintArray, textArray } from '../connection/arrays.js';
import { partsWithoutRepeats } from '../connection/batcher.js';
import type { Queryable, Connections } from '../connection/connections.js';
import type { Counters } from './counters.js';
import { toTask, toTombstone, wholeMs, type FoundColumns } from './task-columns.js';
import type { Insert } from './insert.js';
import { finishKeys, hasKey, takeKeys } from './unique-keys.js';
import { findTasks } from '../statements/find-tasks.sql.js';
import { insertTasks } from '../statements/insert-tasks.sql.js';
import { lockForClaims, pendingOf } from '../statements/room.sql.js';

/** Stores tasks in one commit; a result for each, in order. */
export async function insertAll(
  connections: Connections,
  counters: Counters,
  inserts: readonly Insert[],
): Promise<InsertResult[]> {
  const parts = partsWithoutRepeats(inserts, ({ task }) => task.id);
  const isLimited = inserts.some(({ task }) => task.maxPending > 0);
  const isKeyed = inserts.some(hasKey);
  if (parts.length === 1 && !isLimited && !isKeyed) return insertPart(connections, inserts);
  return connections.transact((transaction) => insertInTransaction(transaction, counters, inserts));
}

/** The same as part of a transaction. */
export async function insertInTransaction(
  transaction: Queryable,
  counters: Counters,
  inserts: readonly Insert[],
): Promise<InsertResult[]> {
  const isLimited = inserts.some(({ task }) => task.maxPending > 0);
  const insert = (db: Queryable, part: readonly Insert[]) =>
    isLimited ? insertLimited(db, counters, part) : insertPart(db, part);
  const results: InsertResult[] = [];
  if (isLimited) await transaction.query(lockForClaims, [limitedQueues(inserts)]);
  for (const part of partsWithoutRepeats(inserts, ({ task }) => task.id)) {
    results.push(...(await insertKeyed(transaction, part, insert)));
  }
  return results;
}

/** Inserts tasks, those with a unique key only if they get it. */
async function insertKeyed(
  db: Queryable,
  inserts: readonly Insert[],
  insert: (db: Queryable, part: readonly Insert[]) => Promise<InsertResult[]>,
): Promise<InsertResult[]> {
  const keyed = inserts.filter(hasKey);
  if (keyed.length === 0) return insert(db, inserts);
  const found = await db.query<FoundColumns>(findTasks, [keyed.map(({ task }) => task.id)]);
  const known = new Map(found.map((row) => [row.id, row]));
  // The id decides first.
  const fresh = keyed.filter(({ task, now }) => !isTaken(known.get(task.id), now));
  const results = new Map<Insert, InsertResult>();
  const store = async (part: readonly Insert[]) => {
    const answers = await insert(db, part);
    part.forEach((each, i) => results.set(each, answers[i]!));
  };
  await store(inserts.filter((each) => !fresh.includes(each as (typeof fresh)[number])));
  // The same key twice: the second gets the answer about the first.
  const keyOf = ({ task }: Insert) => JSON.stringify([task.queue, task.uniqueKey]);
  for (const part of partsWithoutRepeats(fresh, keyOf)) {
    for (const [each, result] of await takeKeys(db, part)) results.set(each, result);
    const taken = part.filter((each) => !results.has(each));
    await store(taken);
    await finishKeys(
      db,
      taken,
      taken.map((each) => results.get(each)!),
    );
  }
  return inserts.map((each) => results.get(each)!);
}

function limitedQueues(inserts: readonly Insert[]): string[] {
  const queues = inserts.filter(({ task }) => task.maxPending > 0).map(({ task }) => task.queue);
  return [...new Set(queues)].toSorted();
}

async function insertPart(db: Queryable, inserts: readonly Insert[]): Promise<InsertResult[]> {
  if (inserts.length === 0) return [];
  const values = valuesOf(inserts);
  const [answer] = await db.query<{ stored: string | null; known: string | null }>(
    insertTasks,
    values,
  );
  const stored = new Set(answer!.stored?.split(','));
  const known = new Set(answer!.known?.split(','));
  const results: (InsertResult | undefined)[] = inserts.map(({ task, now }) => {
    if (stored.has(task.id)) return { kind: 'stored', task: toStored(task, now) };
    return known.has(task.queue) ? undefined : { kind: 'queue_not_found' };
  });
  const taken = inserts.filter((_, i) => results[i] === undefined);
  if (taken.length === 0) return results as InsertResult[];
  const found = await findTaken(db, taken);
  return results.map((result, i) => result ?? found.get(inserts[i]!.task.id)!);
}

async function findTaken(
  db: Queryable,
  taken: readonly Insert[],
): Promise<Map<string, InsertResult>> {
  const ids = taken.map(({ task }) => task.id);
  const rows = await db.query<FoundColumns>(findTasks, [ids]);
  const found = new Map<string, InsertResult>(rows.map((row) => [row.id, takenBy(row)]));
  const gone = taken.filter(({ task }) => !found.has(task.id));
  // The tombstone was deleted in between.
  if (gone.length > 0) {
    const results = await insertPart(db, gone);
    gone.forEach(({ task }, i) => found.set(task.id, results[i]!));
  }
  return found;
}

function takenBy(row: FoundColumns): InsertResult {
  if (row.status === null) return { kind: 'purged', tombstone: toTombstone(row) };
  return { kind: 'existing', task: toTask(row) };
}

/** Holds the claim locks of the queues, so that `max_pending` is exact. */
async function insertLimited(
  db: Queryable,
  counters: Counters,
  inserts: readonly Insert[],
): Promise<InsertResult[]> {
  const [ids, queues] = [inserts.map(({ task }) => task.id), limitedQueues(inserts)];
  const taken = await db.query<FoundColumns>(findTasks, [ids]);
  const counts = await db.query<{ name: string; pending: number }>(pendingOf, [
    textArray(queues),
    bigintArray(queues.map((queue) => counters.firstEntry(queue))),
  ]);
  const pending = new Map(counts.map((count) => [count.name, count.pending]));
  const takenIds = new Map(taken.map((row) => [row.id, row]));
  const full = new Set<Insert>();
  for (const insert of inserts) {
    const { task, now } = insert;
    const count = pending.get(task.queue);
    if (count === undefined || isTaken(takenIds.get(task.id), now)) continue;
    if (task.maxPending > 0 && count >= task.maxPending) full.add(insert);
    else pending.set(task.queue, count + 1);
  }
  const admitted = inserts.filter((insert) => !full.has(insert));
  const results = admitted.length > 0 ? await insertPart(db, admitted) : [];
  let next = 0;
  return inserts.map((insert) => (full.has(insert) ? { kind: 'queue_full' } : results[next++]!));
}

function isTaken(row: FoundColumns | undefined, now: number): boolean {
  return row !== undefined && (row.status !== null || row.purged_at! > now - tombstoneMs);
}

function toStored(task: NewTask, now: number): Task {
  const row = newRow(task, now);
  row.dueAt = wholeMs(task.dueAt);
  return toNewTask(row);
}

function valuesOf(inserts: readonly Insert[]): unknown[] {
  const tasks = inserts.map(({ task }) => task);
  let end = 1;
  const starts = tasks.map(({ payload }) => {
    const start = end;
    end += payload.length;
    return start;
  });
  return [
    textArray(tasks.map((task) => task.id)),
    textArray(tasks.map((task) => task.queue)),
    textArray(tasks.map((task) => task.handlerRef)),
    smallintArray(tasks.map((task) => task.priority)),
    textArray(tasks.map((task) => task.groupKey)),
    bigintArray(tasks.map((task) => wholeMs(task.dueAt))),
    bigintArray(tasks.map((task) => task.expiresAt)),
    textArray(tasks.map((task) => task.submittedBy)),
    textArray(tasks.map((task) => task.payloadContentType)),
    textArray(tasks.map((task) => JSON.stringify(task.headers))),
    integerArray(starts),
    integerArray(tasks.map((task) => task.payload.length)),
    Buffer.concat(tasks.map((task) => task.payload)),
    bigintArray(inserts.map(({ now }) => now)),
  ];
}
