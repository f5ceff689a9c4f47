import type { RowReader } from '@millrace/engine';
import type { Task, TaskStatus } from '../../core/task.js';
import {
  comparePositions,
  isStatusFilter,
  matchesTaskFilter,
  maxExactCount,
  PageInProgress,
  pageOfAll,
  type TaskCount,
  type TaskFilter,
  type TaskListQuery,
  type TaskPage,
  type TaskPosition,
} from '../port/task-list.js';
import { toTask } from '../port/store-parts.js';
import { readFlowRows } from './flow-rows.js';
import { idsIn } from './indexes.js';
import {
  after,
  groupBytes,
  groupStart,
  groupTimeKey,
  idKey,
  idLength,
  idOf,
  keyBefore,
  kinds,
  queueKey,
  queueTimeKey,
  readyGroup,
  readyKey,
  readyPriority,
  timeOf,
} from './keys.js';
import { type Counters, readCounters, readQueue } from './queue-state.js';
import { oldestPendingAt } from './reading.js';
import { decodeIfMatching, decodeTask, isTombstone } from './task-codec.js';

export interface PageReader {
  /** Reads the next slice. True: the page is complete. */
  readSlice(rows: RowReader): boolean;
  readonly page: TaskPage;
}

export interface CountReader {
  readSlice(rows: RowReader): boolean;
  readonly count: TaskCount;
}

/** Chooses how to read a page by how many tasks may match. */
export function pageReader(rows: RowReader, query: TaskListQuery): PageReader {
  const queue = readQueue(rows, query.queue);
  if (!queue) return { readSlice: () => true, page: { tasks: [], next: undefined } };
  const { number } = queue;
  const { statuses, flowId } = query.filter;
  const few =
    flowId === undefined
      ? fewTasks(rows, number, readCounters(rows, number), statuses)
      : membersOf(rows, number, flowId);
  if (few) return { readSlice: () => true, page: pageOfAll(few, query) };
  const { order } = query;
  if (order === 'next') return new NextPageReader(number, query);
  return new CreatedPageReader(rows, number, { ...query, order });
}

export function countReader(
  rows: RowReader,
  { queue: name, filter }: { queue: string; filter: TaskFilter },
): CountReader {
  const queue = readQueue(rows, name);
  const known = (count: number) => ({
    readSlice: () => true,
    count: { count, isEstimate: false },
  });
  if (!queue) return known(0);
  const counters = readCounters(rows, queue.number);
  if (isStatusFilter(filter)) return known(counted(counters, filter.statuses));
  const few =
    filter.flowId === undefined
      ? fewTasks(rows, queue.number, counters, filter.statuses)
      : membersOf(rows, queue.number, filter.flowId);
  if (few) return known(few.filter((task) => matchesTaskFilter(task, filter)).length);
  return new CreatedCountReader(rows, queue.number, filter);
}

function counted(counters: Counters, statuses: readonly TaskStatus[] | undefined): number {
  const { pending, inFlight, dead, listed = 0 } = counters;
  if (!statuses) return listed;
  const succeeded = listed - pending - inFlight - dead;
  const counts = { PENDING: pending, IN_FLIGHT: inFlight, SUCCEEDED: succeeded, DEAD: dead };
  return [...new Set(statuses)].reduce((sum, status) => sum + counts[status], 0);
}

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
  return tasksIn(rows, queue, ids);
}

function tasksIn(rows: RowReader, queue: number, ids: Iterable<string>): Task[] {
  return [...ids].flatMap((id) => {
    const bytes = rows.get(idKey(kinds.task, id));
    const task = bytes && decodeTask(id, bytes);
    return task && !isTombstone(task) && task.queueNumber === queue ? [toTask(task.row)] : [];
  });
}

function membersOf(rows: RowReader, queue: number, flowId: string): Task[] {
  const members = readFlowRows(rows, { kinds: ['member'], ids: [flowId] });
  return tasksIn(
    rows,
    queue,
    members.map(({ key }) => key),
  );
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

/** Groups and rows visited in one slice, before other work runs. */
const sliceVisits = 2_000;
const minBatch = 100;
/** A filter that matches little reads larger batches, because each visits every group. */
const growth = 4;
const maxBatch = 2_000;
const timeLength = 6;
const maxPriority = 9;

/**
 * Reads one page of PENDING tasks by due time. Ready tasks are stored by priority and group, so
 * each batch reads the first tasks of every group.
 */
export class NextPageReader {
  readonly #page: PageInProgress<Task>;
  #batch: NextBatch;
  #batchSize: number;

  constructor(
    private readonly queue: number,
    private readonly query: TaskListQuery,
  ) {
    this.#page = new PageInProgress<Task>(query.limit);
    this.#batchSize = Math.max(query.limit + 1, minBatch);
    this.#batch = this.#newBatch(query.after);
  }

  readSlice(rows: RowReader): boolean {
    if (!this.#batch.readSlice(rows)) return false;
    const positions = this.#batch.positions;
    for (const position of positions) {
      const bytes = rows.get(idKey(kinds.task, position.id));
      const task = bytes && decodeIfMatching(position.id, bytes, this.query.filter);
      // Claimed and made due again between two slices: it has another position now.
      const isHere = task?.row.dueAt === position.at && this.#isInRange(task.row.createdAt);
      this.#page.read(position, isHere ? toTask(task.row) : undefined);
      if (this.#page.next) return true;
    }
    if (!this.#batch.isFull) return true;
    this.#batchSize = Math.max(this.#batchSize, Math.min(this.#batchSize * growth, maxBatch));
    this.#batch = this.#newBatch(positions.at(-1));
    return false;
  }

  get page(): TaskPage {
    return { tasks: this.#page.entries, next: this.#page.next };
  }

  #newBatch(from: TaskPosition | undefined): NextBatch {
    const size = Math.min(this.#batchSize, this.#page.budget);
    const { groupKey } = this.query.filter;
    const group = groupKey === undefined ? undefined : groupBytes(groupKey);
    return new NextBatch(this.queue, from ?? { at: 0, id: '' }, size, group);
  }

  #isInRange(createdAt: number): boolean {
    const { createdFrom = 0, createdBefore = Infinity } = this.query.filter;
    return createdAt >= createdFrom && createdAt < createdBefore;
  }
}

/** The first `size` PENDING tasks after a position, by due time and id. */
class NextBatch {
  readonly #found = new Map<string, TaskPosition>();
  #at: Buffer;
  #source: 'scheduled' | 'ready' | 'lined' = 'scheduled';
  /** Tasks that are due after this are not among the first. */
  #worst = Infinity;
  #visited = 0;

  constructor(
    private readonly queue: number,
    private readonly from: TaskPosition,
    private readonly size: number,
    /** Of ready tasks, read those of this group alone. */
    private readonly group: Buffer | undefined,
  ) {
    this.#at = queueKey(kinds.ready, queue);
  }

  /** True: all groups were read. */
  readSlice(rows: RowReader): boolean {
    if (this.#source === 'scheduled') {
      this.#readScheduled(rows);
      this.#source = 'ready';
    }
    if (this.group) {
      this.#readOneGroup(rows, this.group);
      return true;
    }
    this.#visited = 0;
    while (this.#visited < sliceVisits) {
      if (this.#readGroup(rows)) continue;
      if (this.#source === 'lined') return true;
      this.#source = 'lined';
      this.#at = queueKey(kinds.lined, this.queue);
    }
    return false;
  }

  get positions(): TaskPosition[] {
    const sorted = [...this.#found.values()].toSorted((a, b) => comparePositions(a, b, 'next'));
    return sorted.slice(0, this.size);
  }

  get isFull(): boolean {
    return this.#found.size >= this.size;
  }

  #readScheduled(rows: RowReader): void {
    const start = queueTimeKey(kinds.scheduled, this.queue, this.from.at, this.from.id);
    this.#take(rows, start, after(queueKey(kinds.scheduled, this.queue)));
  }

  #readOneGroup(rows: RowReader, group: Buffer): void {
    const { queue, from } = this;
    for (let priority = maxPriority; priority >= 0; priority--) {
      const start = readyKey(queue, priority, group, from.at, from.id);
      this.#take(rows, start, after(start.subarray(0, -timeLength - idLength)));
    }
    const lined = groupTimeKey(kinds.lined, queue, group, from.at, from.id);
    this.#take(rows, lined, after(groupStart(kinds.lined, queue, group)));
  }

  /** Reads the next group. False: there is none. */
  #readGroup(rows: RowReader): boolean {
    const { queue, from } = this;
    const kind = this.#source === 'ready' ? kinds.ready : kinds.lined;
    const end = after(queueKey(kind, queue));
    const [first] = rows.range({ start: this.#at, end, limit: 1 });
    if (!first) return false;
    this.#visited++;
    const { key } = first;
    const start =
      kind === kinds.ready
        ? readyKey(queue, readyPriority(key), readyGroup(key), from.at, from.id)
        : groupTimeKey(kind, queue, linedGroup(key), from.at, from.id);
    const prefix = key.subarray(0, key.length - timeLength - idLength);
    this.#at = after(kind === kinds.ready ? prefix : groupStart(kind, queue, linedGroup(key)));
    this.#take(rows, start, this.#at);
    return true;
  }

  #take(rows: RowReader, start: Buffer, end: Buffer): void {
    let taken = 0;
    for (const { key } of rows.range({ start, end, limit: this.size + 1 })) {
      const position = { at: timeOf(key), id: idOf(key) };
      if (comparePositions(position, this.from, 'next') <= 0) continue;
      if (position.at > this.#worst || taken >= this.size) break;
      taken++;
      this.#visited++;
      this.#found.set(position.id, position);
    }
    if (this.#found.size > 4 * this.size) this.#shrink();
  }

  #shrink(): void {
    const first = this.positions;
    this.#found.clear();
    for (const position of first) this.#found.set(position.id, position);
    this.#worst = first.at(-1)!.at;
  }
}

function linedGroup(key: Buffer): Buffer {
  return key.subarray(5, key.length - timeLength - idLength);
}

/** Ids visited in one slice, before other work runs. */
const sliceIds = 2_000;

interface ScanOptions {
  queue: number;
  filter: TaskFilter;
  order: 'newest' | 'oldest';
  after?: TaskPosition | undefined;
}

/** Visits the ids of a queue's tasks in the order of their creation. */
class CreatedScan {
  readonly #isNewest: boolean;
  readonly #after: TaskPosition | undefined;
  #at: Buffer;
  readonly #end: Buffer;

  constructor({ queue, filter, order, after: place }: ScanOptions, from: number) {
    this.#isNewest = order === 'newest';
    this.#after = place;
    const isPast = place !== undefined;
    const lowest = isPast && !this.#isNewest ? Math.max(from, place.at) : from;
    const low = queueTimeKey(kinds.listed, queue, lowest);
    const top = filter.createdBefore ?? Infinity;
    const highest = isPast && this.#isNewest ? Math.min(top, place.at + 1) : top;
    const high =
      highest === Infinity
        ? after(queueKey(kinds.listed, queue))
        : queueTimeKey(kinds.listed, queue, highest);
    // The start of a reverse range is inclusive.
    this.#at = this.#isNewest ? keyBefore(high) : low;
    this.#end = this.#isNewest ? keyBefore(low) : high;
  }

  /** True: the end was reached, or `visit` returned false. */
  readSlice(rows: RowReader, visit: (position: TaskPosition) => boolean): boolean {
    const range = { start: this.#at, end: this.#end, reverse: this.#isNewest };
    let ids: string[] = [];
    let time: number | undefined;
    let visited = 0;
    for (const { key, value } of rows.range(range)) {
      const at = timeOf(key);
      if (at !== time && time !== undefined) {
        if (!this.#visit(time, ids, visit)) return true;
        visited += ids.length;
        ids = [];
        this.#at = Buffer.from(key);
        if (visited >= sliceIds) return false;
      }
      time = at;
      ids.push(...idsIn(value));
    }
    if (time !== undefined) this.#visit(time, ids, visit);
    return true;
  }

  /** Counts the ids that are left without reading their tasks. */
  countSlice(rows: RowReader): { count: number; isLast: boolean } {
    const range = { start: this.#at, end: this.#end, reverse: this.#isNewest, limit: sliceIds };
    let [count, seen] = [0, 0];
    for (const { key, value } of rows.range(range)) {
      seen++;
      count += value.length / idLength;
      this.#at = this.#isNewest ? keyBefore(key) : Buffer.concat([key, Buffer.of(0)]);
    }
    return { count, isLast: seen < sliceIds };
  }

  #visit(at: number, ids: string[], visit: (position: TaskPosition) => boolean): boolean {
    ids.sort();
    if (this.#isNewest) ids.reverse();
    for (const id of ids) {
      if (this.#after?.at === at) {
        if (this.#isNewest ? id >= this.#after.id : id <= this.#after.id) continue;
      }
      if (!visit({ at, id })) return false;
    }
    return true;
  }
}

/** No task that matches was created before this. */
function lowerBound(rows: RowReader, queue: number, { statuses, createdFrom = 0 }: TaskFilter) {
  const isPending = statuses?.every((status) => status === 'PENDING') ?? false;
  return Math.max(createdFrom, isPending ? (oldestPendingAt(rows, queue) ?? 0) : 0);
}

/** Reads one page by creation time. */
export class CreatedPageReader {
  readonly #page: PageInProgress<Task>;
  readonly #scan: CreatedScan;

  constructor(
    rows: RowReader,
    queue: number,
    private readonly query: TaskListQuery & { order: 'newest' | 'oldest' },
  ) {
    this.#page = new PageInProgress<Task>(query.limit);
    this.#scan = new CreatedScan({ ...query, queue }, lowerBound(rows, queue, query.filter));
  }

  readSlice(rows: RowReader): boolean {
    const { filter } = this.query;
    return this.#scan.readSlice(rows, (position) => {
      const bytes = rows.get(idKey(kinds.task, position.id));
      const task = bytes && decodeIfMatching(position.id, bytes, filter);
      this.#page.read(position, task && toTask(task.row));
      return this.#page.next === undefined;
    });
  }

  get page(): TaskPage {
    return { tasks: this.#page.entries, next: this.#page.next };
  }
}

/** Counts tasks; beyond `maxExactCount` it estimates from those it has read. */
export class CreatedCountReader {
  readonly #scan: CreatedScan;
  #matching = 0;
  #seen = 0;
  #unread = 0;

  constructor(
    rows: RowReader,
    queue: number,
    private readonly filter: TaskFilter,
  ) {
    const options = { queue, filter, order: 'newest' as const };
    this.#scan = new CreatedScan(options, lowerBound(rows, queue, filter));
  }

  readSlice(rows: RowReader): boolean {
    if (this.#isEstimate) {
      const { count, isLast } = this.#scan.countSlice(rows);
      this.#unread += count;
      return isLast;
    }
    const { statuses, handlerRef, groupKey } = this.filter;
    const needsTask = !isStatusFilter({ statuses, handlerRef, groupKey }) || statuses !== undefined;
    const isEnd = this.#scan.readSlice(rows, ({ id }) => {
      this.#seen++;
      const bytes = needsTask ? rows.get(idKey(kinds.task, id)) : undefined;
      if (!needsTask || (bytes && decodeIfMatching(id, bytes, this.filter))) this.#matching++;
      return true;
    });
    return isEnd;
  }

  get count(): TaskCount {
    if (!this.#isEstimate) return { count: this.#matching, isEstimate: false };
    const share = this.#matching / this.#seen;
    const isEstimate = this.#unread > 0;
    return { count: this.#matching + Math.round(this.#unread * share), isEstimate };
  }

  get #isEstimate(): boolean {
    return this.#matching > maxExactCount;
  }
}
