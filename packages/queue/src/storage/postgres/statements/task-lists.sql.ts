import type { TaskFilter, TaskListQuery, TaskOrder } from '../../port/task-list.js';
import { listingStatement, statement, type Statement } from '../connection/statement.js';
import { isReady } from './low-water-marks.sql.js';

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
