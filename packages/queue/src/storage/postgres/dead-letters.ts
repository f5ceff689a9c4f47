import type { WholeTask } from '../../core/task.js';
import { pageBytes } from '../port/store-parts.js';
import {
  type DeadChange,
  type DeadChangeResult,
  type DeadGroup,
  type DeadPage,
  type DeadTaskQuery,
  nextRow,
  type Row,
} from '../port/task-store.js';
import type { Connections, Transaction } from './connections.js';
import { purgeTasks, redriveTasks } from './retention.js';
import { recordAct } from './audit.js';
import { lockRow, storeRows } from './rows.js';
import {
  endedColumns,
  fixedColumns,
  historyColumn,
  statement,
  type Statement,
  tasksOf,
} from './statement.js';
import { keepQueue } from './queues.js';
import { attemptsOf, type TaskColumns, toTask, wholeMs, withoutZeros } from './tasks.js';
import { tasksRedriven } from '../port/flow-graph.js';
import { runLater } from '../port/flow-program.js';
import type { Counters } from './counters.js';
import { flowIo } from './flows.js';
import { holdKeysAgain, type RedrivenColumns } from './inserts.js';

type PageColumns = TaskColumns & { attempts: string; payload_bytes: number };

const noBytes = new Uint8Array(0);

export async function readDeadPage(
  connections: Connections,
  query: DeadTaskQuery,
): Promise<DeadPage> {
  const { statement, values } = deadPage(cleaned(query));
  const rows = await connections.query<PageColumns>(statement, values);
  const page: DeadPage = { tasks: [], next: undefined };
  let bytes = 0;
  for (const row of rows) {
    const task = toTask(row) as WholeTask;
    task.payload = noBytes;
    task.attempts = attemptsOf(row.attempts);
    bytes += pageBytes(task) + Math.ceil(row.payload_bytes / 3) * 4;
    const last = page.tasks.at(-1);
    if (last && (page.tasks.length >= query.limit || bytes > query.maxBytes)) {
      page.next = { deadAt: last.deadAt!, id: last.id };
      break;
    }
    page.tasks.push(task);
  }
  page.tasks = await withPayloads(connections, page.tasks);
  return page;
}

/** Read apart, so that a page never holds more payloads than it shows. */
async function withPayloads(
  connections: Connections,
  tasks: readonly WholeTask[],
): Promise<WholeTask[]> {
  if (tasks.length === 0) return [];
  const ids = tasks.map(({ id }) => id);
  const rows = await connections.query<{ id: string; payload: Buffer }>(payloads, [ids]);
  const byId = new Map(rows.map((row) => [row.id, row.payload]));
  return tasks.flatMap((task) => {
    const payload = byId.get(task.id);
    // Deleted between the two statements.
    if (!payload) return [];
    task.payload = payload;
    return task;
  });
}

function cleaned(query: DeadTaskQuery): DeadTaskQuery {
  const { errorType } = query.filter;
  if (errorType === undefined) return query;
  return { ...query, filter: { ...query.filter, errorType: withoutZeros(errorType) } };
}

export async function readDeadGroups(
  connections: Connections,
  { queue, limit }: { queue: string; limit: number },
): Promise<DeadGroup[]> {
  const rows = await connections.query<{
    error_type: string | null;
    handler_ref: string;
    http_status: number | null;
    count: number;
    first_seen_at: number;
    last_seen_at: number;
    sample_id: string;
  }>(deadGroups, [queue, limit]);
  return rows.map((row) => ({
    errorType: row.error_type,
    handlerRef: row.handler_ref,
    httpStatus: row.http_status,
    count: row.count,
    firstSeenAt: row.first_seen_at,
    lastSeenAt: row.last_seen_at,
    sampleId: row.sample_id,
  }));
}

export function actOnDead(
  connections: Connections,
  counters: Counters,
  change: DeadChange,
): Promise<DeadChangeResult> {
  const { action, now, by, selector, row } = change;
  return connections.transact(async (transaction) => {
    const [queue] = await transaction.query<{ no: number }>(keepQueue, [change.queue]);
    if (!queue) return row ? { kind: 'conflict', ids: [] } : done([]);
    const put = row && { ...row, value: {} };
    const before = put && (await lockRow(transaction, queue.no, put));
    if (row && !before) return { kind: 'conflict', ids: [] };
    const { ids, dependents } =
      action === 'redrive'
        ? await redrive(transaction, counters, queue.no, change)
        : { ids: await purge(transaction, queue.no, change), dependents: 0 };
    if (row) {
      const next = nextRow({ ...row, value: row.value(ids.length) }, before, now)!;
      await storeRows(transaction, [next], new Map([[change.queue, queue.no]]));
      return done(ids, dependents, next);
    }
    const audited = { at: now, principal: by, action, queue: change.queue, selector };
    await recordAct(transaction, { ...audited, count: ids.length });
    return done(ids, dependents);
  });
}

function done(ids: string[], dependents = 0, row?: Row): DeadChangeResult {
  return { kind: 'done', ids, dependents, row };
}

async function redrive(
  transaction: Transaction,
  counters: Counters,
  queueNo: number,
  change: DeadChange,
): Promise<{ ids: string[]; dependents: number }> {
  const dueAt = new Map<string, number>();
  for (const [index, id] of change.ids.entries()) {
    if (!dueAt.has(id)) dueAt.set(id, wholeMs(change.dueAt?.(index) ?? change.now));
  }
  const ids = [...dueAt.keys()];
  const values = [queueNo, ids, [...dueAt.values()], change.diedBy, change.now];
  const rows = await transaction.query<RedrivenColumns>(redriveTasks, values);
  const changed = new Map(rows.map((row) => [row.id, row]));
  const inOrder = ids.filter((id) => changed.has(id));
  await holdKeysAgain(
    transaction,
    inOrder.map((id) => changed.get(id)!),
    change.now,
  );
  const inFlow = inOrder.filter((id) => changed.get(id)!.in_flow);
  const { now, withDependents = true, fromStep } = change;
  const program = tasksRedriven({ ids: inFlow, now, withDependents, fromStep });
  const dependents =
    inFlow.length > 0 ? await runLater(program, flowIo({ transaction, counters, now })) : 0;
  return { ids: inOrder, dependents };
}

async function purge(
  transaction: Transaction,
  queueNo: number,
  change: DeadChange,
): Promise<string[]> {
  const ids = [...new Set(change.ids)];
  const values = [queueNo, ids, change.diedBy, change.now];
  const rows = await transaction.query<{ id: string }>(purgeTasks, values);
  const gone = new Set(rows.map(({ id }) => id));
  return ids.filter((id) => gone.has(id));
}

const filters = {
  errorType: 'e.error_type =',
  handlerRef: 'e.handler_ref =',
  httpStatus: 'e.http_status =',
  diedFrom: 'e.ended_at >=',
  diedBefore: 'e.ended_at <',
} as const;

/**
 * One page of dead tasks, without their payloads but with the sizes of these. The statement is not
 * prepared: which index is best depends on the values of the filters, and a plan for any value may
 * read all dead tasks.
 */
export function deadPage(query: DeadTaskQuery): { statement: Statement; values: unknown[] } {
  const isOldest = query.order === 'oldest_first';
  const values: unknown[] = [query.queue, query.limit + 1];
  let where = '';
  for (const key of Object.keys(filters) as (keyof typeof filters)[]) {
    const value = query.filter[key];
    if (value === undefined) continue;
    where += ` AND ${filters[key]} $${values.push(value)}`;
  }
  if (query.after) {
    const [at, id] = [values.push(query.after.deadAt), values.push(query.after.id)];
    where += ` AND (e.ended_at, e.id) ${isOldest ? '>' : '<'} ($${at}::bigint, $${id}::text)`;
  }
  const direction = isOldest ? '' : ' DESC';
  const text = `WITH page AS (
      SELECT e.* FROM millrace.ended e
      WHERE e.queue_no = (SELECT no FROM millrace.queues WHERE name = $1) AND e.outcome = 4${where}
      ORDER BY e.ended_at${direction}, e.id${direction} LIMIT $2
    )
    SELECT ${fixedColumns}, ${endedColumns('p')}, ${historyColumn('p')},
      octet_length(t.payload) AS payload_bytes
    FROM page p ${tasksOf('p')}
    ORDER BY p.ended_at${direction}, p.id${direction}`;
  return { statement: { name: '', text }, values };
}

export const payloads = statement(
  'payloads',
  'SELECT id, payload FROM millrace.tasks WHERE id = ANY($1::text[])',
);

/** Times have 13 digits for the next 260 years; with ids behind them they sort as text. */
export const deadGroups = statement(
  'dead_groups',
  `SELECT * FROM (
    SELECT error_type, handler_ref, http_status, count(*) AS count,
      min(ended_at) AS first_seen_at, max(ended_at) AS last_seen_at,
      substr(max(lpad(ended_at::text, 20, '0') || id), 21) AS sample_id
    FROM millrace.ended
    WHERE queue_no = (SELECT no FROM millrace.queues WHERE name = $1) AND outcome = 4
    GROUP BY error_type, handler_ref, http_status
  ) AS kinds
  ORDER BY count DESC, last_seen_at DESC, sample_id DESC LIMIT $2`,
);
