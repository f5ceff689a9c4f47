import type { RowReader } from '@millrace/engine';
import type { Queue } from '../../core/queue.js';
import { configInUse } from '../port/store-parts.js';
import { never, type WaitKind } from '../../core/flow.js';
import type { Starts } from '../../core/pacing.js';
import {
  after,
  groupBytes,
  idOf,
  kinds,
  nameKey,
  queueKey,
  queueTimeKey,
  readyGroup,
  readyKey,
  readyStart,
  timeOf,
  firstOf,
  firstTime,
} from './keys.js';

export interface StoredQueue extends Queue {
  /** Prefix of the keys of its tasks. */
  number: number;
}

/** State of a queue that every claim and settlement changes; stored apart from the config. */
export interface Counters extends ReadyOrder {
  pending: number;
  inFlight: number;
  dead: number;
  /** PENDING tasks of flows by what they wait for; absent while there was none. */
  waits?: Partial<Record<WaitKind, number>>;
  /** Those of them that wait for no time. */
  parked?: number;
  /** Ids in the rows `listed`; absent in data of 0.1.0. */
  listed?: number;
  starts: Starts;
  /** Rows `scheduled`; absent in older data: count them. */
  scheduled?: number;
  /** No scheduled task is due before this; null: none is scheduled. */
  nextDue: number | null;
  /** FIFO ordering: only the head of each group is ready. */
  fifo: boolean;
  /** Progress of a change of ordering: the next key, in hex. */
  converting: string | null;
}

export const noCounters: Counters = {
  pending: 0,
  inFlight: 0,
  dead: 0,
  turns: {},
  starts: [],
  scheduled: 0,
  floors: {},
  lanes: 0,
  nextDue: null,
  fifo: false,
  converting: null,
};

interface DecodedQueue {
  bytes: Buffer;
  stored: StoredQueue;
  /** Without internal fields. */
  queue: Queue;
}

/** Cache of decoded queues by name: configs are large, and every call reads one. */
const decoded = new Map<string, DecodedQueue>();
const maxDecoded = 1_000;

/** The stored queue. It is shared and must not be changed. */
export function readQueue(rows: RowReader, name: string): StoredQueue | undefined {
  return decodeQueue(rows, name)?.stored;
}

/** Like `readQueue`, without internal fields. */
export function readPlainQueue(rows: RowReader, name: string): Queue | undefined {
  return decodeQueue(rows, name)?.queue;
}

function decodeQueue(rows: RowReader, name: string) {
  const bytes = rows.get(nameKey(kinds.queue, name));
  if (!bytes) return undefined;
  const known = decoded.get(name);
  if (known?.bytes.equals(bytes)) return known;
  const stored = frozen(storedQueue(bytes));
  // Copied: the bytes may be in memory of the database.
  const entry = { bytes: Buffer.from(bytes), stored, queue: Object.freeze(toQueue(stored)) };
  if (decoded.size >= maxDecoded) decoded.clear();
  decoded.set(name, entry);
  return entry;
}

function storedQueue(bytes: Buffer): StoredQueue {
  return JSON.parse(bytes.toString()) as StoredQueue;
}

function frozen<Value extends object>(value: Value): Value {
  for (const part of Object.values(value) as unknown[]) {
    if (typeof part === 'object' && part !== null) frozen(part);
  }
  return Object.freeze(value);
}

export function readCounters(rows: RowReader, queue: number): Counters {
  return decodeCounters(rows.get(queueKey(kinds.counters, queue)));
}

function decodeCounters(bytes: Buffer | undefined): Counters {
  return bytes ? (JSON.parse(bytes.toString()) as Counters) : structuredClone(noCounters);
}

interface ReadCounters {
  /** As stored. */
  bytes: Buffer | undefined;
  counters: Counters;
  /** All ready rows; undefined: not known. */
  ready: ReadyKeys | undefined;
}

/**
 * Rows of queues as last read or written: every step and every plan needs them, and most steps have
 * one task.
 */
export class RecentRows {
  readonly #queues = new Map<string, DecodedQueue>();
  /** How many changes of a queue are under way. */
  readonly #changing = new Map<string, number>();
  readonly #counters = new Map<number, ReadCounters>();

  /** Until `queueChanged`, the queue is read again each time: the change may fail. */
  changeQueue(name: string): void {
    this.#queues.delete(name);
    this.#changing.set(name, (this.#changing.get(name) ?? 0) + 1);
  }

  queueChanged(name: string): void {
    const left = this.#changing.get(name)! - 1;
    if (left > 0) this.#changing.set(name, left);
    else this.#changing.delete(name);
  }

  known(name: string): Queue | undefined {
    return this.#queues.get(name)?.queue;
  }

  /** The queue, shared and not to be changed. */
  decoded(rows: RowReader, name: string): DecodedQueue | undefined {
    const known = this.#queues.get(name);
    if (known) return known;
    const found = decodeQueue(rows, name);
    if (found && !this.#changing.has(name)) {
      if (this.#queues.size >= maxDecoded) this.#queues.clear();
      this.#queues.set(name, found);
    }
    return found;
  }

  /** Not to be changed by a reader. */
  counters(rows: RowReader, queue: number): ReadCounters {
    const bytes = rows.get(queueKey(kinds.counters, queue));
    const known = this.#counters.get(queue);
    // The same buffer, and so the same state: what is rolled back or folded is another one.
    if (known && known.bytes === bytes) return known;
    return { bytes, counters: decodeCounters(bytes), ready: undefined };
  }

  /** The caller changes the counters, and keeps them when it has written them. */
  takeCounters(rows: RowReader, queue: number): ReadCounters {
    const taken = this.counters(rows, queue);
    this.#counters.delete(queue);
    return taken;
  }

  keepCounters(queue: number, counters: ReadCounters): void {
    if (this.#counters.size >= maxDecoded) this.#counters.clear();
    this.#counters.set(queue, counters);
  }
}

/** Undefined: there are too many to keep them in memory, or others than heads of groups. */
export function knownReady(rows: RowReader, queue: number, counters: Counters) {
  const { pending, scheduled = 0, fifo, converting } = counters;
  if (pending - scheduled > maxFew || fifo || converting !== null) return undefined;
  const start = queueKey(kinds.ready, queue);
  const found: ReadyKeys = new Map();
  for (const { key } of rows.range({ start, end: after(start) })) found.set(nameOf(key), key);
  return found;
}

export function nameOf(key: Buffer): string {
  return key.toString('latin1');
}

export function scheduledCount(rows: RowReader, queue: number): number {
  const start = queueKey(kinds.scheduled, queue);
  let count = 0;
  for (const _row of rows.range({ start, end: after(start) })) count++;
  return count;
}

/** Scheduled rows that have fallen due are counted up to this many: the next claim moves them. */
const maxOverdue = 10_000;

/** PENDING tasks that are not due at `now`. */
export function delayedCount(rows: RowReader, queue: number, now: number): number {
  const { scheduled, parked = 0 } = readCounters(rows, queue);
  const all = (scheduled ?? scheduledCount(rows, queue)) - parked;
  const start = queueKey(kinds.scheduled, queue);
  const end = queueTimeKey(kinds.scheduled, queue, now + 1);
  let overdue = 0;
  for (const _row of rows.range({ start, end, limit: maxOverdue })) overdue++;
  return Math.max(0, all - overdue);
}

/** Groups read to find the earliest due time. */
const maxGroups = 1_000;

/** The earliest due time of a PENDING task; with more than 1,000 groups, of those read. */
export function oldestDueAt(rows: RowReader, queue: number): number | null {
  const { floors, lanes } = readCounters(rows, queue);
  let oldest = Infinity;
  const see = (key: Buffer | undefined) => {
    if (key && timeOf(key) < never) oldest = Math.min(oldest, timeOf(key));
  };
  const first = (start: Buffer, end: Buffer) => {
    for (const { key } of rows.range({ start, end, limit: 1 })) return key;
    return undefined;
  };
  see(firstOf(rows, kinds.scheduled, queue));
  let groups = 0;
  const seeGroups = (from: Buffer, end: Buffer, prefixOf: (key: Buffer) => Buffer) => {
    for (let key = first(from, end); key && groups < maxGroups; groups++) {
      see(key);
      key = first(after(prefixOf(key)), end);
    }
  };
  for (let priority = 9; priority >= 0; priority--) {
    if (!(lanes & (1 << priority))) continue;
    const start = readyStart(queue, priority);
    const ungrouped = Buffer.concat([start, groupBytes(null)]);
    const mark = floors[priority];
    see(
      first(
        mark ? readyKey(queue, priority, groupBytes(null), mark[0], mark[1]) : ungrouped,
        after(ungrouped),
      ),
    );
    seeGroups(after(ungrouped), after(start), (key) => key.subarray(0, 6 + readyGroup(key).length));
  }
  const lined = queueKey(kinds.lined, queue);
  seeGroups(lined, after(lined), (key) => key.subarray(0, key.length - tailLength));
  return oldest === Infinity ? null : oldest;
}

/** Time and id at the end of a key. */
const tailLength = 32;

/** Without internal fields. */
export function toQueue(stored: StoredQueue): Queue {
  const { number: _number, ...queue } = stored;
  return { ...queue, config: configInUse(stored.config) };
}

export function encodeJson(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

/** Tasks of one group to scan before seeking to the next group. */
const maxGroupSteps = 4;
/** Maximum tasks of one group that are read at a time. */
const maxRefill = 512;
/** Maximum tasks that one claim may skip; the next claim continues. */
const maxSkipped = 10_000;

/** Keys of ready rows by their bytes. */
export type ReadyKeys = Map<string, Buffer>;

/** The group key whose turn was last, by priority. */
export type Turns = Record<number, string | null>;

/**
 * Low-water mark by priority: every ready task without a group up to it was claimed. Recently
 * claimed rows are still in the file, and scanning them would cost more than the claim.
 */
export type LowWaterMarks = Record<number, readonly [due: number, id: string]>;

/** Drops the low-water mark if a task without a group becomes ready below it. */
export function lowerMark(floors: LowWaterMarks, priority: number, due: number, id: string): void {
  const mark = floors[priority];
  if (!mark) return;
  const time = Math.floor(due);
  if (time < mark[0] || (time === mark[0] && id <= mark[1])) delete floors[priority];
}

/** So few ready tasks are kept in memory: a claim would begin several ranges to find one. */
export const maxFew = 64;

/** Claim order of a queue. The field names are those of the stored counters. */
export interface ReadyOrder {
  turns: Turns;
  floors: LowWaterMarks;
  /** Bit mask of the priorities that may have ready tasks. */
  lanes: number;
}

/**
 * Picks up to `limit` ready tasks of a queue: higher priority first, then group keys round-robin
 * from the last turn, within a group by due time and id. It seeks from group to group, so the cost
 * depends on the tasks picked, not on the tasks ready. Updates `order`. Skips tasks that `accept`
 * rejects, and the rest of a group if it says so. `few`: the keys of all that are ready, if known.
 */
export function pickReady(
  rows: RowReader,
  queue: number,
  order: ReadyOrder,
  { limit, few }: { limit: number; few?: ReadyKeys | undefined },
  accept: Accept,
): readonly Buffer[] {
  const picks = new Picks(limit, accept);
  const sorted = few && [...few.values()].sort((a, b) => a.compare(b));
  for (let priority = 9; priority >= 0 && !picks.isOver; priority--) {
    if (!(order.lanes & (1 << priority))) continue;
    const scan = new PriorityScan(rows, queue, priority, picks, sorted);
    scan.pick(order);
    if (scan.isEmpty) order.lanes &= ~(1 << priority);
  }
  return picks.keys;
}

/** `group`: nothing more of the group of this task may be picked. */
export type Accept = (key: Buffer) => boolean | 'group';

class Picks {
  readonly keys: Buffer[] = [];
  skipped = 0;

  constructor(
    private readonly limit: number,
    private readonly accept: Accept,
  ) {}

  get left(): number {
    return this.limit - this.keys.length;
  }

  get isOver(): boolean {
    return this.left <= 0 || this.skipped >= maxSkipped;
  }

  offer(key: Buffer): boolean | 'group' {
    const answer = this.accept(key);
    if (answer === true) this.keys.push(key);
    else this.skipped++;
    return answer;
  }
}

/** Scans the ready tasks of one priority. */
class PriorityScan {
  readonly #start: Buffer;
  readonly #end: Buffer;
  #groups: GroupCursor[] = [];
  /** No task of this priority is ready any more. */
  isEmpty = true;

  constructor(
    private rows: Pick<RowReader, 'range'>,
    private readonly queue: number,
    private readonly priority: number,
    private readonly picks: Picks,
    private readonly ready: readonly Buffer[] | undefined,
  ) {
    this.#start = readyStart(queue, priority);
    this.#end = after(this.#start);
  }

  pick({ turns, floors }: ReadyOrder): void {
    const { picks, priority } = this;
    const last = turns[priority];
    const before = { picked: picks.keys.length, skipped: picks.skipped };
    const start = this.#startAbove(floors[priority]);
    const few = this.ready?.filter((key) => isWithin(key, { start, end: this.#end }));
    if (few)
      this.rows = {
        range: (range) =>
          few.flatMap((key) => (isWithin(key, range) ? { key, value: noBytes } : [])),
      };
    if (last === undefined) {
      this.#firstRound(start, this.#end);
    } else {
      const beyond = after(Buffer.concat([this.#start, groupBytes(last)]));
      this.#firstRound(beyond, this.#end);
      this.#firstRound(start, beyond);
    }
    while (this.#groups.length > 0 && !picks.isOver) this.#nextRound();
    const picked = picks.keys.slice(before.picked);
    if (few) this.isEmpty = picked.length === few.length;
    if (picked.length === 0) return;
    turns[priority] = groupOf(picked.at(-1)!);
    const free = picked.findLast((key) => groupOf(key) === null);
    if (!free) return;
    if (picks.skipped > before.skipped) delete floors[priority];
    else floors[priority] = [timeOf(free), idOf(free)];
  }

  #startAbove(mark: LowWaterMarks[number] | undefined): Buffer {
    if (!mark) return this.#start;
    const key = readyKey(this.queue, this.priority, groupBytes(null), mark[0], mark[1]);
    return Buffer.concat([key, Buffer.of(0)]);
  }

  /** The first task of each group, in the order of the groups. */
  #firstRound(start: Buffer, end: Buffer): void {
    let from: Buffer | undefined = start;
    while (from && !this.picks.isOver) from = this.#walk(from, end);
  }

  /** Scans small groups. Returns the key to seek to after a large one. */
  #walk(from: Buffer, end: Buffer): Buffer | undefined {
    let group: GroupCursor | undefined;
    for (const { key } of this.rows.range({ start: from, end })) {
      if (!group?.holds(key)) {
        group = new GroupCursor(this.rows, key, this.picks);
        this.#groups.push(group);
        this.isEmpty = false;
      } else if (group.seen >= maxGroupSteps) {
        if (!group.hasPicked) group.pick();
        return group.end;
      }
      group.push(key);
      if (!group.hasPicked) group.pickBuffered();
      if (this.picks.isOver) return undefined;
    }
    return undefined;
  }

  #nextRound(): void {
    const left: GroupCursor[] = [];
    for (const group of this.#groups) {
      if (this.picks.isOver) return;
      if (group.pick()) left.push(group);
    }
    this.#groups = left;
  }
}

const noBytes = Buffer.alloc(0);

function isWithin(key: Buffer, { start, end }: { start?: Uint8Array; end?: Uint8Array }): boolean {
  return (!start || key.compare(start) >= 0) && (!end || key.compare(end) < 0);
}

/** Position in one group. */
class GroupCursor {
  /** The first key after the group. */
  readonly end: Buffer;
  readonly #prefix: Buffer;
  #buffer: Buffer[] = [];
  #at = 0;
  #last: Buffer;
  #ended = false;
  /** The limit of tasks in flight of the group is reached. */
  #isFull = false;
  seen = 0;
  hasPicked = false;

  constructor(
    private readonly rows: Pick<RowReader, 'range'>,
    first: Buffer,
    private readonly picks: Picks,
  ) {
    this.#prefix = first.subarray(0, 6 + readyGroup(first).length);
    this.#last = first;
    this.end = after(this.#prefix);
  }

  holds(key: Buffer): boolean {
    const { length } = this.#prefix;
    return key.length > length && this.#prefix.compare(key, 0, length) === 0;
  }

  push(key: Buffer): void {
    this.#buffer.push(key);
    this.#last = key;
    this.seen++;
  }

  /** Picks the next task. False: the group is exhausted, or the skip limit is reached. */
  pick(): boolean {
    for (;;) {
      if (this.pickBuffered()) return true;
      if (this.#ended || this.picks.isOver) return false;
      this.#refill(Math.min(Math.max(this.picks.left, this.seen), maxRefill));
    }
  }

  /** Like `pick`, from the buffer only. */
  pickBuffered(): boolean {
    while (this.#at < this.#buffer.length && !this.#isFull) {
      const answer = this.picks.offer(this.#buffer[this.#at++]!);
      if (answer === 'group') this.#ended = this.#isFull = true;
      if (answer !== true) continue;
      this.hasPicked = true;
      return true;
    }
    return false;
  }

  #refill(limit: number): void {
    const start = Buffer.concat([this.#last, Buffer.of(0)]);
    const before = this.seen;
    this.#buffer = [];
    this.#at = 0;
    for (const { key } of this.rows.range({ start, end: this.end, limit })) this.push(key);
    this.#ended = this.seen - before < limit;
  }
}

function groupOf(key: Buffer): string | null {
  const group = readyGroup(key);
  return group[0] === 0 ? null : group.toString('utf8', 1, group.length - 1);
}

/**
 * When a task of each running queue is next due. This is read often and for all queues, so the
 * times are cached until a change of the queue makes the store forget them.
 */
export class DueTimes {
  readonly #dueAt = new Map<string, number | undefined>();
  /** Queues whose last claim was full. */
  readonly #assumedDue = new Set<string>();
  /** How many inserts into a queue are being written, where no reader sees them yet. */
  readonly #inserts = new Map<string, number>();
  #names: readonly string[] | undefined;

  constructor(private readonly recent: RecentRows) {}

  beginInsert(names: Iterable<string>): void {
    for (const name of names) this.#inserts.set(name, (this.#inserts.get(name) ?? 0) + 1);
  }

  endInsert(names: Iterable<string>): void {
    for (const name of names) {
      const left = this.#inserts.get(name)! - 1;
      if (left > 0) this.#inserts.set(name, left);
      else this.#inserts.delete(name);
      this.forget(name);
    }
  }

  assumeDue(name: string): void {
    this.#dueAt.delete(name);
    this.#assumedDue.add(name);
  }

  forget(name: string): void {
    this.#dueAt.delete(name);
    this.#assumedDue.delete(name);
  }

  forgetAll(): void {
    this.#dueAt.clear();
    this.#assumedDue.clear();
  }

  /** A queue was created or deleted. */
  forgetQueues(): void {
    this.#names = undefined;
  }

  /** A claim need not read first. */
  isAssumedDue(name: string): boolean {
    return this.#inserts.has(name) || this.#assumedDue.has(name);
  }

  isDue(name: string, now: number, rows: RowReader): boolean {
    const at = this.#of(name, rows);
    return at !== undefined && at <= now;
  }

  read(rows: RowReader): Map<string, number> {
    const due = new Map<string, number>();
    this.#names ??= queues(rows).map((queue) => queue.name);
    for (const name of this.#names) {
      const at = this.#of(name, rows);
      if (at !== undefined) due.set(name, at);
    }
    return due;
  }

  /** Undefined: nothing is pending, or the queue is paused. */
  #of(name: string, rows: RowReader): number | undefined {
    if (!this.#dueAt.has(name)) this.#dueAt.set(name, dueAt(rows, name, this.recent));
    return this.#dueAt.get(name);
  }
}

/** When the next lease or task expires: no earlier than the bound in memory. */
export class UpkeepTime {
  /** Undefined: not known. */
  #bound: number | undefined;

  /** A commit has added a lease or a task that expires then. */
  lower(at: number): void {
    if (this.#bound !== undefined && at < this.#bound) this.#bound = at;
  }

  forget(): void {
    this.#bound = undefined;
  }

  /**
   * `mayBeEarly`: the bound will do. A read passes over the leases that have ended since the last
   * fold, which was a tenth of the cost of a task that comes alone.
   */
  read(rows: RowReader, mayBeEarly: boolean): number | undefined {
    let at = this.#bound;
    if (!mayBeEarly || at === undefined) {
      const [lease, expiry] = [firstTime(rows, kinds.lease), firstTime(rows, kinds.expiry)];
      this.#bound = at = Math.min(lease ?? Infinity, expiry ?? Infinity);
    }
    return at === Infinity ? undefined : at;
  }
}

function dueAt(rows: RowReader, name: string, recent: RecentRows): number | undefined {
  const queue = recent.decoded(rows, name)?.stored;
  if (!queue || queue.paused) return undefined;
  const { number } = queue;
  const { pending, scheduled, lanes, fifo, converting } = recent.counters(rows, number).counters;
  if (pending === 0) return undefined;
  const isReady = lanes !== 0 || fifo || converting !== null;
  const isScheduled = scheduled !== 0;
  let earliest: number | undefined;
  for (const kind of [
    ...(isReady ? ([kinds.ready, kinds.lined] as const) : []),
    ...(isScheduled ? ([kinds.scheduled] as const) : []),
  ]) {
    const first = firstOf(rows, kind, number);
    if (first && timeOf(first) < never) {
      earliest = Math.min(earliest ?? Infinity, timeOf(first));
    }
  }
  return earliest;
}

export function queues(rows: RowReader): StoredQueue[] {
  const range = { start: Buffer.of(kinds.queue), end: Buffer.of(kinds.queue + 1) };
  return Array.from(rows.range(range), ({ value }) => storedQueue(value));
}
