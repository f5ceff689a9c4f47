import type { Clock } from '@millrace/kit/clock';
import type { QueueCounts } from '../../core/queue.js';
import type { Task, TaskStatus } from '../../core/task.js';
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
} from '../port/task-list.js';
import type { Connections } from './connections.js';
import { readRows } from './flows.js';
import { isReady } from './low-water-marks.js';
import { listingStatement, statement, type Statement } from './statement.js';
import { findTasks, type FoundColumns, toTask, withoutZeros } from './tasks.js';

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
    const few = await this.#fewTasks(query.queue, query.filter);
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
    const few = await this.#fewTasks(queue, filter);
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
  async #fewTasks(queue: string, { statuses, flowId }: TaskFilter): Promise<Task[] | undefined> {
    if (flowId !== undefined) return this.#membersOf(queue, flowId);
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

  async #membersOf(queue: string, flowId: string): Promise<Task[]> {
    const rows = await readRows(this.connections, { kinds: ['member'], ids: [flowId] });
    const tasks = await this.#tasks(rows.map(({ key }) => key));
    return tasks.filter((task) => task.queue === queue);
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

/**
 * How tasks are read: all of a queue by creation, its pending ones by creation, or its pending ones
 * by due time.
 */
export type ListSource = 'all' | 'pending' | 'next';

/** A task that was read: its position, and whether it matches the filter. */
export type ScannedRow = [id: string, at: number, matches: boolean];

const queueNo = '(SELECT no FROM millrace.queues WHERE name = $1)';

/** Collects the values and conditions of one statement; its name says which conditions it has. */
class Parts {
  readonly values: unknown[];
  readonly names: string[];

  constructor(source: ListSource, queue: string, limit: number) {
    this.values = [queue, limit];
    this.names = [source];
  }

  /** ` AND text $n`, or nothing if there is no value. */
  and(name: string, text: string, value: unknown, type = ''): string {
    if (value === undefined) return '';
    this.names.push(name);
    return ` AND ${text} $${this.values.push(value)}${type}`;
  }
}

/** The next tasks after a position, at most `limit`, with those that do not match the filter. */
export function scanTasks(
  source: ListSource,
  query: Pick<TaskListQuery, 'queue' | 'filter' | 'after'> & { order: TaskOrder },
  limit: number,
): { statement: Statement; values: unknown[] } {
  const parts = new Parts(source, query.queue, limit);
  const direction = query.order === 'newest' ? 'DESC' : 'ASC';
  parts.names.push(direction);
  const bounds = { direction, after: afterOf(query, parts) };
  const texts = { all: scanAll, pending: scanPending, next: scanNext };
  const text = texts[source](query.filter, bounds, parts);
  return {
    statement: listingStatement(`scan_${parts.names.join('_')}`, text),
    values: parts.values,
  };
}

interface Bounds {
  direction: string;
  /** Compares `(at, id)` with the position of the last page. */
  after: (at: string, id: string) => string;
}

function afterOf({ after, order }: Pick<TaskListQuery, 'after' | 'order'>, parts: Parts) {
  if (!after) return () => '';
  parts.names.push('after');
  const [at, id] = [parts.values.push(after.at), parts.values.push(after.id)];
  const sign = order === 'newest' ? '<' : '>';
  return (atColumn: string, idColumn: string) =>
    ` AND (${atColumn}, ${idColumn}) ${sign} ($${at}::bigint, $${id}::text)`;
}

function createdIn(row: string, { createdFrom, createdBefore }: TaskFilter, parts: Parts): string {
  return (
    parts.and('from', `${row}.created_at >=`, createdFrom, '::bigint') +
    parts.and('before', `${row}.created_at <`, createdBefore, '::bigint')
  );
}

const statusOf = `CASE WHEN l.queue_no IS NOT NULL
      THEN CASE WHEN l.lease_token IS NULL THEN 'PENDING' ELSE 'IN_FLIGHT' END
      ELSE CASE e.outcome WHEN 3 THEN 'SUCCEEDED' ELSE 'DEAD' END END`;

function scanAll(filter: TaskFilter, { direction, after }: Bounds, parts: Parts): string {
  return `WITH scanned AS MATERIALIZED (
      SELECT t.id, t.created_at, t.handler_ref, t.group_key FROM millrace.tasks t
      WHERE t.queue = $1 AND t.purged_at IS NULL${createdIn('t', filter, parts)}${after('t.created_at', 't.id')}
      ORDER BY t.created_at ${direction}, t.id ${direction} LIMIT $2
    )
    SELECT s.id, s.created_at, coalesce(l.queue_no, e.queue_no) IS NOT DISTINCT FROM ${queueNo}${
      parts.and('handler', 's.handler_ref =', filter.handlerRef) +
      parts.and('group', 's.group_key IS NOT DISTINCT FROM', filter.groupKey) +
      (filter.statuses
        ? parts.and('status', `${statusOf} = ANY(`, filter.statuses, '::text[])')
        : '')
    }
    FROM scanned s
    LEFT JOIN LATERAL (SELECT queue_no, lease_token FROM millrace.live WHERE id = s.id OFFSET 0) l
      ON true
    LEFT JOIN LATERAL (SELECT queue_no, outcome FROM millrace.ended WHERE id = s.id OFFSET 0) e
      ON true
    ORDER BY s.created_at ${direction}, s.id ${direction}`;
}

/** Whether a row of `live` in `s` matches; the handler is in `tasks`. */
function pendingMatch(filter: TaskFilter, parts: Parts): string {
  const handler = '(SELECT t.handler_ref FROM millrace.tasks t WHERE t.id = s.id) =';
  return (
    's.lease_token IS NULL' +
    parts.and('handler', handler, filter.handlerRef) +
    parts.and('group', 's.group_key =', filter.groupKey)
  );
}

/** `created_at >= 0` is a condition of the index. */
function scanPending(filter: TaskFilter, { direction, after }: Bounds, parts: Parts): string {
  return `WITH scanned AS MATERIALIZED (
      SELECT l.id, l.created_at, l.lease_token, l.group_key FROM millrace.live l
      WHERE l.queue_no = ${queueNo} AND l.stage < 2 AND l.created_at >= 0${createdIn('l', filter, parts)}${after('l.created_at', 'l.id')}
      ORDER BY l.created_at ${direction}, l.id ${direction} LIMIT $2
    )
    SELECT s.id, s.created_at, ${pendingMatch(filter, parts)} FROM scanned s
    ORDER BY s.created_at ${direction}, s.id ${direction}`;
}

/**
 * Ready tasks are in the index by priority and group: it jumps from group to group and reads the
 * first tasks of each.
 */
function scanNext(filter: TaskFilter, { after }: Bounds, parts: Parts): string {
  const columns = 'l.id, l.due_at, l.created_at, l.lease_token, l.group_key';
  const first = `ORDER BY l.due_at, l.id LIMIT $2`;
  const place = after('l.due_at', 'l.id');
  const only = parts.and('only', 'l.group_key =', filter.groupKey);
  const group = `SELECT l.priority, l.group_key FROM millrace.live l
        WHERE l.queue_no = ${queueNo} AND ${isReady}${only}`;
  return `WITH RECURSIVE groups(priority, group_key) AS (
      (${group} ORDER BY l.priority, l.group_key LIMIT 1)
      UNION ALL
      SELECT f.priority, f.group_key FROM groups g CROSS JOIN LATERAL (
        ${group} AND (l.priority, l.group_key) > (g.priority, g.group_key)
        ORDER BY l.priority, l.group_key LIMIT 1
      ) f
    ), scanned AS MATERIALIZED (
      SELECT * FROM (
        SELECT r.* FROM groups g CROSS JOIN LATERAL (
          SELECT ${columns} FROM millrace.live l
          WHERE l.queue_no = ${queueNo} AND ${isReady} AND l.priority = g.priority
            AND l.group_key = g.group_key${place} ${first}
        ) r
        UNION ALL
        (SELECT ${columns} FROM millrace.live l
          WHERE l.queue_no = ${queueNo} AND l.stage = 1${place} ${first})
      ) AS l ${first}
    )
    SELECT s.id, s.due_at, ${pendingMatch(filter, parts)}${createdIn('s', filter, parts)}
    FROM scanned s ORDER BY s.due_at, s.id`;
}

/** Ids of at most $2 pending, and of at most $2 dead tasks of queue $1. */
export const fewPending = statement(
  'few_pending',
  `SELECT l.id FROM millrace.live l
  WHERE l.queue_no = ${queueNo} AND l.stage < 2 AND l.created_at >= 0 AND l.lease_token IS NULL
  LIMIT $2`,
);
export const fewDead = statement(
  'few_dead',
  `SELECT id FROM millrace.ended WHERE queue_no = ${queueNo} AND outcome = 4 LIMIT $2`,
);

/** Tasks of queue $1 that are in flight, from at most $2 claims; null if there are more claims. */
export const fewInFlight = statement(
  'few_in_flight',
  `WITH recent AS MATERIALIZED (
    SELECT DISTINCT c.id FROM (
      SELECT unnest(ids) AS id FROM millrace.claims LIMIT $2
    ) c
  )
  SELECT l.id FROM recent r
  CROSS JOIN LATERAL (
    SELECT id FROM millrace.live
    WHERE id = r.id AND queue_no = ${queueNo} AND lease_token IS NOT NULL OFFSET 0
  ) l
  WHERE (SELECT count(*) FROM recent) < $2
  UNION ALL SELECT NULL WHERE (SELECT count(*) FROM recent) >= $2`,
);

/** How many tasks of a queue the planner expects. */
export const expectedTasks: Statement = {
  name: '',
  text: `EXPLAIN (FORMAT JSON) SELECT 1 FROM millrace.tasks WHERE queue = $1 AND purged_at IS NULL`,
};
