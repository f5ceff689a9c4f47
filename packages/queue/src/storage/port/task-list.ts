import type { Task, TaskStatus } from '../../core/task.js';

/** Tasks that match every given field. */
export interface TaskFilter {
  statuses?: readonly TaskStatus[] | undefined;
  handlerRef?: string | undefined;
  groupKey?: string | undefined;
  flowId?: string | undefined;
  /** Inclusive. */
  createdFrom?: number | undefined;
  /** Exclusive. */
  createdBefore?: number | undefined;
}

/** `newest` and `oldest`: by creation. `next`: by due time, for PENDING tasks alone. */
export type TaskOrder = 'newest' | 'oldest' | 'next';

export interface TaskListQuery {
  queue: string;
  filter: TaskFilter;
  order: TaskOrder;
  /** Position at which the previous page ended. */
  after?: TaskPosition | undefined;
  limit: number;
}

/** Creation time, or the due time in the order `next`, and id. */
export interface TaskPosition {
  at: number;
  id: string;
}

export interface TaskPage {
  /** May be empty although there are more pages. */
  tasks: Task[];
  /** End of this page; undefined on the last one. */
  next: TaskPosition | undefined;
}

export interface TaskCount {
  count: number;
  /** Only above `maxExactCount`. */
  isEstimate: boolean;
}

/** The part of the storage port that lists tasks. */
export interface TaskListing {
  /** One page of tasks. Reads at most `maxScannedTasks` tasks. */
  listTasks(query: TaskListQuery): Promise<TaskPage>;
  countTasks(query: { queue: string; filter: TaskFilter }): Promise<TaskCount>;
}

/** Bounds the time of a page to about 50 ms on PostgreSQL. */
export const maxScannedTasks = 4_000;
export const maxExactCount = 10_000;

type FilteredFields = Pick<Task, 'status' | 'handlerRef' | 'groupKey' | 'createdAt' | 'flow'>;

export function matchesTaskFilter(task: FilteredFields, filter: TaskFilter): boolean {
  const { statuses, handlerRef, groupKey, createdFrom, createdBefore } = filter;
  if (createdFrom !== undefined && task.createdAt < createdFrom) return false;
  if (createdBefore !== undefined && task.createdAt >= createdBefore) return false;
  if (statuses && !statuses.includes(task.status)) return false;
  if (handlerRef !== undefined && task.handlerRef !== handlerRef) return false;
  if (filter.flowId !== undefined && task.flow?.flowId !== filter.flowId) return false;
  return groupKey === undefined || task.groupKey === groupKey;
}

/** True if the filter has nothing but statuses. */
export function isStatusFilter(filter: TaskFilter): boolean {
  const { statuses: _statuses, ...rest } = filter;
  return Object.values(rest).every((value) => value === undefined);
}

export function positionOf(task: Task, order: TaskOrder): TaskPosition {
  return { at: order === 'next' ? task.dueAt! : task.createdAt, id: task.id };
}

/** Negative if the first comes before the second in this order. */
export function comparePositions(a: TaskPosition, b: TaskPosition, order: TaskOrder): number {
  const ascending = a.at - b.at || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
  return order === 'newest' ? -ascending : ascending;
}

/** The requested page of all tasks that may match. */
export function pageOfAll(tasks: readonly Task[], query: TaskListQuery): TaskPage {
  const { filter, order, after, limit } = query;
  const left = tasks
    .filter((task) => matchesTaskFilter(task, filter))
    .filter((task) => !after || comparePositions(positionOf(task, order), after, order) > 0)
    .toSorted((a, b) => comparePositions(positionOf(a, order), positionOf(b, order), order));
  const page = left.slice(0, limit);
  const last = left.length > limit ? page.at(-1) : undefined;
  return { tasks: page, next: last && positionOf(last, order) };
}

/** Collects a page from entries in order, of which it reads at most `maxScannedTasks`. */
export class PageInProgress<Entry> {
  readonly entries: Entry[] = [];
  #scanned = 0;
  /** Position of the last entry of the page. */
  #end: TaskPosition | undefined;
  #next: TaskPosition | undefined;

  constructor(private readonly limit: number) {}

  /** End of the page, if it is complete and there are more. */
  get next(): TaskPosition | undefined {
    return this.#next;
  }

  /** How many more tasks may be read. */
  get budget(): number {
    return maxScannedTasks - this.#scanned;
  }

  /** The next entry in order; undefined if it does not match the filter. */
  read(position: TaskPosition, entry: Entry | undefined): void {
    if (entry !== undefined && this.entries.length >= this.limit) {
      this.#next = this.#end;
      return;
    }
    this.#scanned++;
    if (entry !== undefined) {
      this.entries.push(entry);
      this.#end = position;
    }
    if (this.#scanned >= maxScannedTasks) this.#next = position;
  }
}
