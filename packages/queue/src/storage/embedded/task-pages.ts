import type { RowReader } from '@millrace/engine';
import type { TaskStatus } from '../../core/task.js';
import {
  isStatusFilter,
  matchesTaskFilter,
  pageOfAll,
  type TaskCount,
  type TaskFilter,
  type TaskListQuery,
  type TaskPage,
} from '../port/task-list.js';
import { CreatedCountReader, CreatedPageReader } from './created-scan.js';
import { fewTasks } from './few-tasks.js';
import { NextPageReader } from './next-scan.js';
import { readCounters, readQueue, type Counters } from './queue-rows.js';

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
  const few = fewTasks(rows, number, readCounters(rows, number), query.filter.statuses);
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
  const few = fewTasks(rows, queue.number, counters, filter.statuses);
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
