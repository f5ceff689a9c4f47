import type { RowReader } from '@millrace/engine';
import type { Task } from '../../core/task.js';
import { toTask } from '../port/task-row.js';
import {
  comparePositions,
  PageInProgress,
  type TaskListQuery,
  type TaskPage,
  type TaskPosition,
} from '../port/task-list.js';
import {
  after,
  groupBytes,
  groupStart,
  groupTimeKey,
  idKey,
  idLength,
  idOf,
  kinds,
  queueKey,
  queueTimeKey,
  readyGroup,
  readyKey,
  readyPriority,
  timeOf,
} from './keys.js';
import { decodeIfMatching } from './task-codec.js';

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
