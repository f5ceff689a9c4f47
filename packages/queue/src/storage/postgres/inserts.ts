import type { Task } from '../../core/task.js';
import { newRow, toTask as toNewTask } from '../port/store-parts.js';
import { type InsertResult, type NewTask, tombstoneMs } from '../port/task-store.js';
import {
  bigintArray,
  integerArray,
  partsWithoutRepeats,
  smallintArray,
  textArray,
} from './batches.js';
import type { Connections, Queryable } from './connections.js';
import { type Counters, lockForClaims, pendingOf } from './counters.js';
import { recorded } from './events.js';
import { lowerMarks } from './low-water-marks.js';
import { byId, optionColumns, statement } from './statement.js';
import { findTasks, type FoundColumns, statusName, toTask, toTombstone, wholeMs } from './tasks.js';

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
  const queues = [...new Set(fresh.filter(isDebounced).map(({ task }) => task.queue))].toSorted();
  if (queues.length > 0) await db.query(lockForClaims, [queues]);
  for (const part of partsWithoutRepeats(fresh, keyOf)) {
    for (const each of part.filter(isDebounced)) {
      const result = await debounce(db, each);
      if (result) results.set(each, result);
    }
    for (const [each, result] of await takeKeys(
      db,
      part.filter((each) => !results.has(each)),
    )) {
      results.set(each, result);
    }
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

function isDebounced({ task }: Insert): boolean {
  return task.isDebounced === true;
}

/** The pending holder of the key gets the payload; one that has started gives the key up. */
async function debounce(db: Queryable, { task, now }: Insert): Promise<InsertResult | undefined> {
  const { queue, uniqueKey, dueAt, payload, payloadContentType } = task;
  const values = [queue, uniqueKey, wholeMs(dueAt), now, payload, payloadContentType];
  const [changed] = await db.query<{ id: string }>(debounceHolder, values);
  if (!changed) {
    await db.query(takeKeyAway, [queue, uniqueKey]);
    return undefined;
  }
  const [row] = await db.query<FoundColumns>(findTasks, [[changed.id]]);
  return { kind: 'existing', task: toTask(row!) };
}

/** $1 queue, $2 key, $3 due time, $4 now, $5 payload, $6 its content type. */
const debounceHolder = statement(
  'debounce_holder',
  `WITH changed AS (
    UPDATE millrace.live l SET due_at = $3, updated_at = $4,
      stage = CASE WHEN $3 <= $4::bigint THEN 0 ELSE 1 END
    FROM millrace.unique_keys u JOIN millrace.queues q ON q.no = u.queue_no
    WHERE q.name = $1 AND u.key = $2 AND (u.held_until IS NULL OR u.held_until > $4)
      AND l.id = u.id AND l.lease_token IS NULL
    RETURNING l.id, l.queue_no, l.stage, l.priority, l.group_key, l.due_at
  ), ${lowerMarks('changed')}, replaced AS (
    UPDATE millrace.tasks t SET payload = $5, content_type = $6 FROM changed c
    WHERE ${byId('t.id', 'c.id')}
  )
  SELECT id FROM changed`,
);

const takeKeyAway = statement(
  'take_key_away',
  `DELETE FROM millrace.unique_keys u USING millrace.queues q
  WHERE q.no = u.queue_no AND q.name = $1 AND u.key = $2`,
);

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
    textArray(tasks.map(({ options }) => (options ? JSON.stringify(options) : null))),
  ];
}

/** A task to store. */
export interface Insert {
  task: NewTask;
  now: number;
}

/**
 * Stores tasks whose ids differ. An id that exists keeps its task, unless it is a tombstone that is
 * a day old. The queues cannot be deleted before the commit.
 */
export const insertTasks = statement(
  'insert_tasks',
  `WITH input AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::smallint[], $5::text[],
      $6::bigint[], $7::bigint[], $8::text[], $9::text[], $10::text[], $11::integer[],
      $12::integer[], $14::bigint[], $15::text[])
    AS i(id, queue, handler_ref, priority, group_key, due_at, expires_at, submitted_by,
      content_type, headers, payload_start, payload_bytes, now, options)
  ), known AS (
    SELECT no, name FROM millrace.queues WHERE name = ANY($2::text[]) FOR KEY SHARE
  ), stored AS (
    INSERT INTO millrace.tasks AS t (id, queue, handler_ref, priority, group_key, created_at,
      first_due_at, first_expires_at, submitted_by, content_type, headers, payload, options)
    SELECT i.id, i.queue, i.handler_ref, i.priority, i.group_key, i.now,
      i.due_at, i.expires_at, i.submitted_by, i.content_type, i.headers,
      substring($13::bytea FROM i.payload_start FOR i.payload_bytes), i.options
    FROM input i JOIN known k ON k.name = i.queue
    ON CONFLICT (id) DO UPDATE SET queue = excluded.queue, handler_ref = excluded.handler_ref,
      priority = excluded.priority, group_key = excluded.group_key,
      created_at = excluded.created_at, first_due_at = excluded.first_due_at,
      first_expires_at = excluded.first_expires_at, purged_at = NULL, purged_status = NULL,
      submitted_by = excluded.submitted_by, content_type = excluded.content_type,
      headers = excluded.headers, payload = excluded.payload, options = excluded.options
    WHERE t.purged_at <= excluded.created_at - ${tombstoneMs}
    RETURNING t.id, t.queue, t.priority, t.group_key, t.created_at, t.first_due_at,
      t.first_expires_at, t.options
  ), waiting AS (
    INSERT INTO millrace.live (id, queue_no, created_at, updated_at, due_at, expires_at, attempt,
      total_attempts, redrive_count, stage, priority, started, group_key, attempts, labels,
      retain_ms)
    SELECT s.id, k.no, s.created_at, s.created_at, s.first_due_at, s.first_expires_at, 0,
      0, 0, CASE WHEN s.first_due_at <= s.created_at THEN 0 ELSE 1 END, s.priority, false,
      coalesce(s.group_key, ''), '{}', ${optionColumns('s.options')}
    FROM stored s JOIN known k ON k.name = s.queue
    RETURNING id, queue_no, stage, priority, group_key, due_at, created_at
  ), ${recorded({ type: 'submitted', from: 'waiting', at: 'r.created_at', attempt: '0' })},
  ${lowerMarks('waiting')}, counted AS (
    INSERT INTO millrace.counters (queue_no, pending, in_flight, dead)
    SELECT queue_no, count(*), 0, 0 FROM waiting GROUP BY queue_no
  )
  SELECT (SELECT string_agg(id, ',') FROM stored) AS stored,
    (SELECT string_agg(name, ',') FROM known) AS known`,
);

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
    const rows = await db.query<{ id: string }>(takeFreeKeys, [
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
  const rows = await db.query<HolderColumns>(keyHolders, [
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
  return (await db.query(knownQueue, [queue])).length === 0;
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
    await db.query(noteKeys, [
      textArray(stored.map(({ task }) => task.id)),
      textArray(stored.map(({ task }) => task.uniqueKey)),
      bigintArray(stored.map(({ task }) => task.uniqueUntil ?? null)),
    ]);
  }
  if (others.length > 0) {
    await db.query(giveKeysBack, [others.map(({ task }) => task.id)]);
  }
}

export interface RedrivenColumns {
  id: string;
  queue: string;
  handler_ref: string;
  unique_key: string | null;
  unique_until: number | null;
  in_flow: boolean;
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
  if (lost.length > 0) await db.query(dropKeys, [lost]);
}

async function holdAgain(db: Queryable, row: RedrivenColumns, now: number): Promise<boolean> {
  const { id, queue, unique_key: key, unique_until: until, handler_ref: handlerRef } = row;
  const values = [[queue], [key], [id], [until], [handlerRef], now];
  const taken = await db.query(takeFreeKeys, values);
  if (taken.length > 0) return true;
  const [holder] = await db.query<HolderColumns>(keyHolders, [[queue], [key]]);
  return holder?.id === id;
}

/**
 * The tasks take the keys that are free. Returns those that did. $1 queues, $2 keys, $3 ids, $4
 * until, $5 handlers, $6 now. The keys must differ.
 */
export const takeFreeKeys = statement(
  'take_keys',
  `INSERT INTO millrace.unique_keys AS u (queue_no, key, id, held_until, handler_ref)
  SELECT q.no, i.key, i.id, i.held_until, i.handler_ref
  FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[])
    AS i(queue, key, id, held_until, handler_ref)
    JOIN millrace.queues q ON q.name = i.queue
  ORDER BY q.no, i.key
  ON CONFLICT (queue_no, key) DO UPDATE SET id = excluded.id, held_until = excluded.held_until,
    handler_ref = excluded.handler_ref, status = NULL
  WHERE u.held_until IS NOT NULL AND u.held_until <= $6
  RETURNING u.id`,
);

export const keyHolders = statement(
  'key_holders',
  `SELECT i.position::integer, u.id, u.handler_ref, u.status
  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS i(queue, key, position)
    JOIN millrace.queues q ON q.name = i.queue
    JOIN millrace.unique_keys u ON u.queue_no = q.no AND u.key = i.key`,
);

export const knownQueue = statement(
  'known_queue',
  'SELECT no FROM millrace.queues WHERE name = $1',
);

/** Notes the keys of new tasks. $1 ids, $2 keys, $3 until. */
export const noteKeys = statement(
  'note_keys',
  `UPDATE millrace.live l SET unique_key = i.key, unique_until = i.held_until
  FROM unnest($1::text[], $2::text[], $3::bigint[]) AS i(id, key, held_until)
  WHERE ${byId('l.id', 'i.id')}`,
);

/** Tasks that were not stored give their keys back. */
export const giveKeysBack = statement(
  'give_keys_back',
  'DELETE FROM millrace.unique_keys WHERE id = ANY($1::text[])',
);

/** Redriven tasks lose keys that another task holds, and keys whose time is over. */
export const dropKeys = statement(
  'drop_keys',
  'UPDATE millrace.live SET unique_key = NULL, unique_until = NULL WHERE id = ANY($1::text[])',
);

export const deleteEndedKeys = statement(
  'delete_ended_keys',
  `DELETE FROM millrace.unique_keys u USING (
    SELECT queue_no, key FROM millrace.unique_keys
    WHERE held_until IS NOT NULL AND held_until <= $1 LIMIT $2
  ) o
  WHERE u.queue_no = o.queue_no AND u.key = o.key AND u.held_until <= $1`,
);

/** Part of a statement: keys without a time are free when the tasks in `rows` end. */
export const releaseKeys = (rows: string) => `released AS (
    DELETE FROM millrace.unique_keys u USING ${rows} g
    WHERE g.unique_key IS NOT NULL AND ${byId('u.queue_no', 'g.queue_no')}
      AND ${byId('u.key', 'g.unique_key')} AND u.id = g.id AND u.held_until IS NULL
  )`;

/** Part of a statement: keys of deleted tasks say what became of these. */
export const keysOfDeleted = `kept_keys AS (
    UPDATE millrace.unique_keys u SET status = g.outcome FROM gone g
    WHERE g.unique_key IS NOT NULL AND ${byId('u.id', 'g.id')} AND u.held_until IS NOT NULL
  )`;
