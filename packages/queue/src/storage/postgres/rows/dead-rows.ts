import type { WholeTask } from '../../../core/task.js';
import { pageBytes } from '../../port/dead-letters.js';
import {
  type DeadChange,
  type DeadChangeResult,
  type DeadGroup,
  type DeadPage,
  type DeadTaskQuery,
  nextRow,
  type Row,
} from '../../port/task-store.js';
import { recordAct } from './audit.js';
import type { Connections, Transaction } from '../connection/connections.js';
import { attemptsOf } from './history.js';
import { lockRow, storeRows } from './rows.js';
import { toTask, wholeMs, withoutZeros, type TaskColumns } from './task-columns.js';
import { holdKeysAgain, type RedrivenColumns } from './unique-keys.js';
import { purge as purgeStatement } from '../statements/retention.sql.js';
import { deadGroups } from '../statements/dead-groups.sql.js';
import { deadPage, payloads } from '../statements/dead-page.sql.js';
import { keepQueue } from '../statements/queues.sql.js';
import { redrive as redriveStatement } from '../statements/redrive.sql.js';

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

export function actOnDead(connections: Connections, change: DeadChange): Promise<DeadChangeResult> {
  const { action, now, by, selector, row } = change;
  return connections.transact(async (transaction) => {
    const [queue] = await transaction.query<{ no: number }>(keepQueue, [change.queue]);
    if (!queue) return row ? { kind: 'conflict', ids: [] } : done([]);
    const put = row && { ...row, value: {} };
    const before = put && (await lockRow(transaction, queue.no, put));
    if (row && !before) return { kind: 'conflict', ids: [] };
    const act = action === 'redrive' ? redrive : purge;
    const ids = await act(transaction, queue.no, change);
    if (row) {
      const next = nextRow({ ...row, value: row.value(ids.length) }, before, now)!;
      await storeRows(transaction, [next], new Map([[change.queue, queue.no]]));
      return done(ids, next);
    }
    const audited = { at: now, principal: by, action, queue: change.queue, selector };
    await recordAct(transaction, { ...audited, count: ids.length });
    return done(ids);
  });
}

function done(ids: string[], row?: Row): DeadChangeResult {
  return { kind: 'done', ids, row };
}

async function redrive(
  transaction: Transaction,
  queueNo: number,
  change: DeadChange,
): Promise<string[]> {
  const dueAt = new Map<string, number>();
  for (const [index, id] of change.ids.entries()) {
    if (!dueAt.has(id)) dueAt.set(id, wholeMs(change.dueAt?.(index) ?? change.now));
  }
  const ids = [...dueAt.keys()];
  const values = [queueNo, ids, [...dueAt.values()], change.diedBy, change.now];
  const rows = await transaction.query<RedrivenColumns>(redriveStatement, values);
  const changed = new Map(rows.map((row) => [row.id, row]));
  const inOrder = ids.filter((id) => changed.has(id));
  await holdKeysAgain(
    transaction,
    inOrder.map((id) => changed.get(id)!),
    change.now,
  );
  return inOrder;
}

async function purge(
  transaction: Transaction,
  queueNo: number,
  change: DeadChange,
): Promise<string[]> {
  const ids = [...new Set(change.ids)];
  const values = [queueNo, ids, change.diedBy, change.now];
  const rows = await transaction.query<{ id: string }>(purgeStatement, values);
  const gone = new Set(rows.map(({ id }) => id));
  return ids.filter((id) => gone.has(id));
}
