import type { RowReader, RowWriter } from '@millrace/engine';
import type { TaskStatus } from '../../core/task.js';
import type { TaskRow } from '../port/store-parts.js';
import {
  after,
  groupKey,
  groupStart,
  groupTimeKey,
  idLength,
  idOf,
  kinds,
  queueTimeKey,
  readyKey,
  timeKey,
  timeOf,
} from './keys.js';
import { encodeJson } from './queue-state.js';

/** The task of a FIFO group that may be claimed. */
interface GroupHead {
  priority: number;
  due: number;
  id: string;
}

/** Stored state of a group; absent if empty. */
export interface GroupState {
  inFlight: number;
  /** PENDING tasks that were claimed before. */
  retried: number;
  head: GroupHead | null;
}

type StoredGroup = [inFlight: number, retried: number, head: [number, number, string] | 0];

export function readGroup(rows: RowReader, queue: number, group: Buffer): GroupState {
  const bytes = rows.get(groupKey(queue, group));
  if (!bytes) return { inFlight: 0, retried: 0, head: null };
  const [inFlight, retried, head] = JSON.parse(bytes.toString()) as StoredGroup;
  return {
    inFlight,
    retried,
    head: head ? { priority: head[0], due: head[1], id: head[2] } : null,
  };
}

function writeGroup(rows: RowWriter, queue: number, group: Buffer, state: GroupState): void {
  const { inFlight, retried, head } = state;
  const key = groupKey(queue, group);
  if (inFlight === 0 && retried === 0 && !head) return rows.remove(key);
  const stored: StoredGroup = [inFlight, retried, head ? [head.priority, head.due, head.id] : 0];
  rows.put(key, encodeJson(stored));
}

/** State of the queue that a group needs. */
interface QueueOfGroup {
  stored: { number: number };
  counters: { fifo: boolean; lanes: number };
}

interface TouchedGroup {
  queue: QueueOfGroup;
  number: number;
  group: Buffer;
  state: GroupState;
}

/**
 * The groups that one step changes. In a FIFO queue only the head of a group is ready: none while
 * a task of the group is in flight, else the first that waits for a retry, else the first.
 */
export class TouchedGroups {
  readonly #groups = new Map<string, TouchedGroup>();

  constructor(private readonly rows: RowWriter) {}

  touch(queue: QueueOfGroup, group: Buffer): GroupState {
    const { number } = queue.stored;
    const name = `${number} ${group.toString('latin1')}`;
    let touched = this.#groups.get(name);
    if (!touched) {
      touched = { queue, number, group, state: readGroup(this.rows, number, group) };
      this.#groups.set(name, touched);
    }
    return touched.state;
  }

  /** Updates the head of each group. Reads everything first: reads between writes are slow. */
  write(): void {
    const heads = [...this.#groups.values()].map((touched) => this.#headOf(touched));
    let i = 0;
    for (const { queue, number, group, state } of this.#groups.values()) {
      const [before, head] = [state.head, heads[i++]!];
      if (queue.counters.fifo && !isSame(before, head)) {
        if (before) {
          this.rows.remove(readyKey(number, before.priority, group, before.due, before.id));
        }
        if (head) {
          queue.counters.lanes |= 1 << head.priority;
          this.rows.put(readyKey(number, head.priority, group, head.due, head.id), noBytes);
        }
      }
      state.head = head;
      writeGroup(this.rows, number, group, state);
    }
    this.#groups.clear();
  }

  #headOf({ queue, number, group, state }: TouchedGroup): GroupHead | null {
    if (!queue.counters.fifo || state.inFlight > 0) return null;
    if (state.retried === 0) {
      const [first] = this.#first(kinds.lined, number, group);
      return first ? headFrom(first.key, first.value) : null;
    }
    const [retried] = this.#first(kinds.retried, number, group);
    if (!retried) throw new Error('A group counts a retried task that does not exist');
    const [due, id] = [timeOf(retried.key), idOf(retried.key)];
    const key = groupTimeKey(kinds.lined, number, group, due, id);
    const priority = this.rows.get(key);
    return priority ? headFrom(key, priority) : null;
  }

  #first(kind: typeof kinds.lined | typeof kinds.retried, queue: number, group: Buffer) {
    const start = groupStart(kind, queue, group);
    return [...this.rows.range({ start, end: after(start), limit: 1 })];
  }
}

const noBytes = Buffer.alloc(0);

function headFrom(key: Buffer, value: Buffer): GroupHead {
  return { priority: value[0]!, due: timeOf(key), id: idOf(key) };
}

function isSame(a: GroupHead | null, b: GroupHead | null): boolean {
  return a?.id === b?.id && a?.due === b?.due;
}

interface TouchedTime {
  queue: number;
  time: number;
  added: string[];
  removed: Set<string>;
}

/** Ids in one row. */
const maxIds = 500;

/**
 * Changes of the rows `listed`. Tasks of one step with the same creation time share a row: a row
 * for each task would cost a submit more than 5 %.
 */
export class TouchedListings {
  readonly #times = new Map<string, TouchedTime>();
  #last: TouchedTime | undefined;

  add(queue: number, time: number, id: string): void {
    this.#touch(queue, time).added.push(id);
  }

  remove(queue: number, time: number, id: string): void {
    this.#touch(queue, time).removed.add(id);
  }

  /** Returns by how many ids the lists of each queue have grown. */
  write(rows: RowWriter): Map<number, number> {
    const changes = new Map<number, number>();
    for (const { queue, time, added, removed } of this.#times.values()) {
      let change = added.length;
      if (removed.size > 0) change -= removeIds(rows, queue, time, removed);
      for (let from = 0; from < added.length; from += maxIds) {
        putIds(rows, queue, time, added.slice(from, from + maxIds));
      }
      changes.set(queue, (changes.get(queue) ?? 0) + change);
    }
    return changes;
  }

  #touch(queue: number, time: number): TouchedTime {
    if (this.#last?.queue === queue && this.#last.time === time) return this.#last;
    const place = `${queue} ${time}`;
    let touched = this.#times.get(place);
    if (!touched) {
      touched = { queue, time, added: [], removed: new Set() };
      this.#times.set(place, touched);
    }
    this.#last = touched;
    return touched;
  }
}

/** All ids of one creation time, not sorted. */
export function listedAt(rows: RowReader, queue: number, time: number): string[] {
  const range = rangeOf(queue, time);
  return Array.from(rows.range(range), ({ value }) => idsIn(value)).flat();
}

function removeIds(
  rows: RowWriter,
  queue: number,
  time: number,
  removed: ReadonlySet<string>,
): number {
  let count = 0;
  const lists = [...rows.range(rangeOf(queue, time))];
  for (const { key, value } of lists) {
    const ids = idsIn(value);
    const left = ids.filter((id) => !removed.has(id));
    if (left.length === ids.length) continue;
    count += ids.length - left.length;
    rows.remove(key);
    if (left.length > 0) putIds(rows, queue, time, left);
  }
  return count;
}

function putIds(rows: RowWriter, queue: number, time: number, ids: readonly string[]): void {
  rows.put(queueTimeKey(kinds.listed, queue, time, ids[0]), encodeIds(ids));
}

function rangeOf(queue: number, time: number) {
  return {
    start: queueTimeKey(kinds.listed, queue, time),
    end: queueTimeKey(kinds.listed, queue, time + 1),
  };
}

/**
 * Leases of one claim with the same expiry share a row, a list of ids: tasks claimed together are
 * mostly settled together, so this saves writes. The key of the row has the id of its first task.
 */
export class TouchedLeases {
  readonly #lists = new Map<string, TouchedList>();
  /** The list that this step creates for each expiry. */
  readonly #begun = new Map<number, TouchedList>();
  #last: TouchedList | undefined;

  /** Adds a lease. Returns the name of its list. */
  add(end: number, id: string): string {
    let list = this.#begun.get(end);
    if (!list) this.#begun.set(end, (list = this.#touch(end, id)));
    list.added.push(id);
    return list.name;
  }

  remove(end: number, list: string, id: string): void {
    this.#touch(end, list).removed.add(id);
  }

  write(rows: RowWriter): void {
    for (const { end, name, added, removed } of this.#lists.values()) {
      const key = timeKey(kinds.lease, end, name);
      const before = rows.get(key);
      const left = before ? idsIn(before).filter((id) => !removed.has(id)) : [];
      left.push(...added);
      if (left.length > 0) rows.put(key, encodeIds(left));
      else if (before) rows.remove(key);
    }
  }

  #touch(end: number, name: string): TouchedList {
    // Tasks settled together were mostly claimed together.
    if (this.#last?.end === end && this.#last.name === name) return this.#last;
    const place = `${end} ${name}`;
    let list = this.#lists.get(place);
    if (!list) this.#lists.set(place, (list = { end, name, added: [], removed: new Set() }));
    this.#last = list;
    return list;
  }
}

interface TouchedList {
  end: number;
  name: string;
  added: string[];
  removed: Set<string>;
}

/** The tasks whose leases end by `now`, the longest past first. */
export function endedLeaseIds(rows: RowReader, now: number, limit: number): string[] {
  const range = { start: Buffer.of(kinds.lease), end: timeKey(kinds.lease, now + 1) };
  const ended: string[] = [];
  let together: string[] = [];
  let at: number | undefined;
  for (const { key, value } of rows.range(range)) {
    if (timeOf(key) !== at) {
      ended.push(...together.toSorted());
      if (ended.length >= limit) return ended.slice(0, limit);
      together = [];
      at = timeOf(key);
    }
    together.push(...idsIn(value));
  }
  ended.push(...together.toSorted());
  return ended.slice(0, limit);
}

export function encodeIds(ids: readonly string[]): Buffer {
  const value = Buffer.allocUnsafe(ids.length * idLength);
  for (let i = 0; i < ids.length; i++) value.write(ids[i]!, i * idLength, 'latin1');
  return value;
}

export function idsIn(value: Buffer): string[] {
  const ids: string[] = [];
  for (let at = 0; at < value.length; at += idLength) {
    ids.push(value.toString('latin1', at, at + idLength));
  }
  return ids;
}

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
