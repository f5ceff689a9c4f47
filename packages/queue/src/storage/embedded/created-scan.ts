import type { RowReader } from '@millrace/engine';
import type { Task } from '../../core/task.js';
import { toTask } from '../port/task-row.js';
import {
  isStatusFilter,
  maxExactCount,
  PageInProgress,
  type TaskCount,
  type TaskFilter,
  type TaskListQuery,
  type TaskPage,
  type TaskPosition,
} from '../port/task-list.js';
import {
  after,
  idKey,
  idLength,
  keyBefore,
  kinds,
  queueKey,
  queueTimeKey,
  timeOf,
} from './keys.js';
import { idsIn } from './leases.js';
import { oldestPendingAt } from './reading.js';
import { decodeIfMatching } from './task-codec.js';

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
