import type { Clock } from '@millrace/kit/clock';
import type { QueueCounts } from '../../../core/queue.js';
import type { Task, TaskStatus } from '../../../core/task.js';
import {
  isStatusFilter,
  matchesTaskFilter,
  maxExactCount,
  maxScannedTasks,
  PageInProgress,
  pageOfAll,
  type TaskCount,
  type TaskFilter,
  type TaskListQuery,
  type TaskOrder,
  type TaskPage,
  type TaskPosition,
} from '../../port/task-list.js';
import type { Connections } from '../connection/connections.js';
import { findTasks } from '../statements/find-tasks.sql.js';
import {
  expectedTasks,
  fewDead,
  fewInFlight,
  fewPending,
  scanTasks,
  type ListSource,
  type ScannedRow,
} from '../statements/task-lists.sql.js';
import { toTask, withoutZeros, type FoundColumns } from './task-columns.js';

/** So few tasks are all read, found by their status and not by their creation time. */
const maxFew = 2_000;
const maxClaimed = 10_000;
const minScan = 100;
/** The first scan of a count, and the factor by which scans grow. */
const firstCountScan = 1_000;
const growth = 4;
const maxCountMs = 20_000;

/** Lists and counts tasks. */
export class TaskLists {
  constructor(
    private readonly connections: Connections,
    private readonly clock: Clock,
    private readonly counts: (queue: string) => Promise<QueueCounts>,
  ) {}

  async page(given: TaskListQuery): Promise<TaskPage> {
    const query = { ...given, filter: cleaned(given.filter) };
    const few = await this.#fewTasks(query.queue, query.filter.statuses);
    if (few) return pageOfAll(few, query);
    const page = new PageInProgress<string>(query.limit);
    let size = Math.max(query.limit + 1, minScan);
    let { after } = query;
    for (;;) {
      const limit = Math.min(size, page.budget);
      const rows = await this.#scan({ ...query, after }, limit);
      for (const [id, at, matches] of rows) {
        page.read({ at, id }, matches ? id : undefined);
        if (page.next) break;
      }
      if (page.next || rows.length < limit) break;
      after = positionIn(rows);
      // Each scan in the order `next` visits every group, so there are two at most.
      size = query.order === 'next' ? page.budget : size * growth;
    }
    const tasks = await this.#tasks(page.entries);
    // A task may have changed after it was scanned.
    const isHere = (task: Task) => matchesTaskFilter(task, query.filter);
    return { tasks: tasks.filter(isHere), next: page.next };
  }

  async count(given: { queue: string; filter: TaskFilter }): Promise<TaskCount> {
    const { queue } = given;
    const filter = cleaned(given.filter);
    const exact = (count: number) => ({ count, isEstimate: false });
    const isCounted = filter.statuses && !filter.statuses.includes('SUCCEEDED');
    if (isCounted && isStatusFilter(filter)) {
      return exact(countOf(await this.counts(queue), filter.statuses!));
    }
    const few = await this.#fewTasks(queue, filter.statuses);
    if (few) return exact(few.filter((task) => matchesTaskFilter(task, filter)).length);
    let [matching, scanned] = [0, 0];
    let after: TaskPosition | undefined;
    let size = firstCountScan;
    const endsAt = this.clock.monotonic() + maxCountMs;
    while (matching <= maxExactCount && this.clock.monotonic() < endsAt) {
      const rows = await this.#scan({ queue, filter, order: 'newest', after }, size);
      scanned += rows.length;
      for (const [, , matches] of rows) if (matches) matching++;
      if (rows.length < size) return exact(matching);
      after = positionIn(rows);
      size = Math.min(size * growth, maxScannedTasks);
    }
    const total = Math.max(scanned, await this.#expected(queue));
    return { count: Math.round((matching * total) / scanned), isEstimate: true };
  }

  #scan(
    query: Pick<TaskListQuery, 'queue' | 'filter' | 'after'> & { order: TaskOrder },
    limit: number,
  ): Promise<ScannedRow[]> {
    const { statement, values } = scanTasks(sourceOf(query), query, limit);
    return this.connections.query<ScannedRow>(statement, values);
  }

  /** All tasks in these statuses; undefined if they may be many. */
  async #fewTasks(
    queue: string,
    statuses: readonly TaskStatus[] | undefined,
  ): Promise<Task[] | undefined> {
    if (!statuses || statuses.includes('SUCCEEDED')) return undefined;
    if (countOf(await this.counts(queue), statuses) > maxFew) return undefined;
    const sources = [
      { status: 'PENDING', statement: fewPending, limit: maxFew + 1 },
      { status: 'DEAD', statement: fewDead, limit: maxFew + 1 },
      { status: 'IN_FLIGHT', statement: fewInFlight, limit: maxClaimed + 1 },
    ] as const;
    const ids: string[] = [];
    for (const { status, statement, limit } of sources) {
      if (!statuses.includes(status)) continue;
      const rows = await this.connections.query<{ id: string | null }>(statement, [queue, limit]);
      for (const { id } of rows) {
        if (id === null) return undefined;
        ids.push(id);
      }
    }
    if (ids.length > maxFew) return undefined;
    return this.#tasks(ids);
  }

  /** Tasks in the order of the ids, without those that are gone. */
  async #tasks(ids: readonly string[]): Promise<Task[]> {
    if (ids.length === 0) return [];
    const rows = await this.connections.query<FoundColumns>(findTasks, [ids]);
    const found = new Map(rows.map((row) => [row.id, row]));
    return ids.flatMap((id) => {
      const row = found.get(id);
      return row && row.status !== null ? [toTask(row)] : [];
    });
  }

  async #expected(queue: string): Promise<number> {
    const [row] = await this.connections.query<Record<string, unknown>>(expectedTasks, [queue]);
    const plan = row!['QUERY PLAN'] as [{ Plan: { 'Plan Rows': number } }];
    return plan[0].Plan['Plan Rows'];
  }
}

function sourceOf({ filter, order }: { filter: TaskFilter; order: TaskOrder }): ListSource {
  if (order === 'next') return 'next';
  return filter.statuses?.every((status) => status === 'PENDING') ? 'pending' : 'all';
}

function countOf(counts: QueueCounts, statuses: readonly TaskStatus[]): number {
  const by = {
    PENDING: counts.pending,
    IN_FLIGHT: counts.inFlight,
    SUCCEEDED: 0,
    DEAD: counts.dead,
  };
  return [...new Set(statuses)].reduce((sum, status) => sum + by[status], 0);
}

function positionIn(rows: readonly ScannedRow[]): TaskPosition {
  const [id, at] = rows.at(-1)!;
  return { at, id };
}

/** PostgreSQL does not store zero bytes in text, so a filter with one matches nothing else. */
function cleaned(filter: TaskFilter): TaskFilter {
  const { groupKey } = filter;
  return groupKey === undefined ? filter : { ...filter, groupKey: withoutZeros(groupKey) };
}
