import type { QueueConfig } from '../../core/queue.js';
import type { Clock } from '@millrace/kit/clock';
import { UsageError } from '@millrace/kit/errors';
import { waitKinds } from '../../core/flow.js';
import { flowRowKinds } from '../port/flow-store.js';
import type { AuditRecord } from '../../core/audit.js';
import type { Starts } from '../../core/pacing.js';
import type { TaskRow } from '../port/store-parts.js';
import { type Row, StorageUnavailable } from '../port/task-store.js';
import {
  holdsKey,
  isMovedTask,
  type Mark,
  type Moved,
  type MovedQueue,
  movedRow,
  movedTables,
  type MovedTask,
  type Target,
} from '../transfer/moved.js';
import { addAudit, type AuditColumns, auditValues, toRecord } from './audit.js';
import { type Connections, serverSessions, type Transaction } from './connections.js';
import { noTurn } from './low-water-marks.js';
import { createQueue, type QueueColumns, toQueue } from './queues.js';
import { listRows, storeRows } from './rows.js';
import { optionColumns, statement } from './statement.js';
import {
  attemptsOf,
  attemptText,
  type FoundColumns,
  movedTasks,
  progressOf,
  statuses,
  toTask,
  toTombstone,
  verdicts,
  type WholeColumns,
  withoutZeros,
} from './tasks.js';

type MovedColumns = FoundColumns &
  WholeColumns & {
    started: boolean;
    result: string | null;
    progress: string | null;
    unique_key: string | null;
    unique_until: number | null;
    flow_rows: [id: string, kind: number, key: string, value: string][] | null;
  };

/** A PostgreSQL database as one end of a transfer. */
export class PostgresEnd implements Target {
  constructor(
    private readonly connections: Connections,
    private readonly now: number,
  ) {}

  async queues(): Promise<MovedQueue[]> {
    const rows = await this.connections.query<
      QueueColumns & { last_groups: string; starts: string }
    >(movedQueues);
    const own: Row[] = [];
    for (const table of movedTables) {
      own.push(...(await listRows(this.connections, { table, hasBodies: true })));
    }
    return rows.map((row) => {
      const turns = Object.entries(JSON.parse(row.last_groups) as Record<number, string>);
      return {
        queue: { ...toQueue(row), config: JSON.parse(row.config) as QueueConfig },
        turns: Object.fromEntries(turns.map(([priority, key]) => [priority, key || null])),
        starts: JSON.parse(row.starts) as Starts,
        rows: own.filter(({ queue }) => queue === row.name),
      };
    });
  }

  async tasks(afterId: string, limit: number): Promise<Moved[]> {
    const rows = await this.connections.query<MovedColumns>(movedTasks, [afterId, limit]);
    return rows.map((row) => (row.status === null ? toTombstone(row) : toMoved(row)));
  }

  async audit(afterSeq: number, limit: number): Promise<AuditRecord[]> {
    const rows = await this.connections.query<AuditColumns>(movedAudit, [afterSeq, limit]);
    return rows.map(toRecord);
  }

  async size(): Promise<number> {
    const [row] = await this.connections.query<{ size: number }>(movedSize);
    return row!.size;
  }

  mark(): Promise<Mark | undefined> {
    return markOf(this.connections);
  }

  async isEmpty(): Promise<boolean> {
    const [queues, tasks] = [await this.queues(), await this.tasks('', 1)];
    return queues.length + tasks.length + (await this.audit(0, 1)).length === 0;
  }

  putQueues(queues: readonly MovedQueue[], mark: Mark): Promise<void> {
    return this.#write(mark, async (transaction) => {
      for (const { queue, turns, starts, rows } of queues) {
        const keys = Object.entries(turns).map(([priority, key]) => [priority, key ?? '']);
        const [created] = await transaction.query<QueueColumns>(createQueue, [
          queue.name,
          JSON.stringify(queue.config),
          queue.paused,
          queue.version,
          queue.incarnation,
          queue.createdAt,
          queue.updatedAt,
          JSON.stringify(Object.fromEntries(keys)),
          JSON.stringify(starts),
        ]);
        await storeRows(transaction, rows, new Map([[queue.name, created!.no]]));
      }
    });
  }

  putTasks(tasks: readonly Moved[], mark: Mark): Promise<void> {
    const rows = tasks.map((moved) =>
      isMovedTask(moved)
        ? columnsOf(moved, this.now)
        : {
            id: moved.id,
            queue: moved.queue,
            handler_ref: moved.handlerRef,
            priority: 0,
            created_at: moved.purgedAt,
            purged_at: moved.purgedAt,
            purged_status: statusNumber(moved.status),
            submitted_by: '',
            content_type: '',
            headers: '{}',
            payload: '',
          },
    );
    return this.#write(mark, (transaction) => transaction.query(putTasks, [JSON.stringify(rows)]));
  }

  putAudit(records: readonly AuditRecord[], mark: Mark): Promise<void> {
    return this.#write(mark, async (transaction) => {
      for (const record of records) await transaction.query(addAudit, auditValues(record));
    });
  }

  async finish(mark: Mark): Promise<void> {
    await this.#write(mark, () => Promise.resolve());
  }

  /** The connections are the store's. */
  async close(): Promise<void> {}

  async #write(mark: Mark, write: (transaction: Transaction) => Promise<unknown>): Promise<void> {
    const { source, lastId, lastSeq, finished } = mark;
    await this.connections.transact(async (transaction) => {
      await write(transaction);
      await transaction.queryLast(writeMark, [source, lastId, lastSeq, finished]);
    });
  }
}

/** The mark of a transfer into this database, finished or not. */
export async function markOf(connections: Connections): Promise<Mark | undefined> {
  const [row] = await connections.query<{
    source: string;
    last_id: string;
    last_seq: number;
    finished: boolean;
  }>(readMark);
  if (!row) return undefined;
  const { source, last_id: lastId, last_seq: lastSeq, finished } = row;
  return { source, lastId, lastSeq, finished };
}

function toMoved(row: MovedColumns): MovedTask {
  const settled =
    row.settled_token === null
      ? null
      : { token: row.settled_token, verdict: verdicts[row.settled_verdict!]! };
  const task: TaskRow = {
    ...toTask(row),
    started: row.started,
    settled,
    progress: progressOf(row),
    resultDropped: row.result === '',
    uniqueKey: row.unique_key,
    uniqueUntil: row.unique_until,
  };
  const result = row.result === '' ? null : row.result;
  const attempts = attemptsOf(row.attempts);
  const moved = { row: movedRow(task), payload: row.payload, attempts, result };
  if (!task.flow) return moved;
  const flowRows = (row.flow_rows ?? []).map(([id, kind, key, value]) => {
    return { id, kind: flowRowKinds[kind - 1]!, key, value };
  });
  return { ...moved, flowRows };
}

function statusNumber(status: TaskRow['status']): number {
  return { PENDING: 0, IN_FLIGHT: 2, SUCCEEDED: 3, DEAD: 4 }[status];
}

function columnsOf({ row, payload, attempts, result, flowRows }: MovedTask, now: number) {
  const { lease, settled, lastError } = row;
  const isWaiting = row.status === 'PENDING' && row.dueAt! > now;
  const error = lastError && {
    ...lastError,
    errorType: withoutZeros(lastError.errorType),
    message: withoutZeros(lastError.message),
  };
  return {
    id: row.id,
    queue: row.queue,
    handler_ref: row.handlerRef,
    priority: row.priority,
    group_key: row.groupKey,
    created_at: row.createdAt,
    submitted_by: row.submittedBy,
    content_type: row.payloadContentType,
    headers: JSON.stringify(row.headers),
    options: row.options ? JSON.stringify(row.options) : null,
    payload: Buffer.from(payload).toString('base64'),
    status: isWaiting ? statuses.scheduled : statusNumber(row.status),
    attempt: row.attempt,
    total_attempts: row.totalAttempts,
    redrive_count: row.redriveCount,
    updated_at: row.updatedAt,
    due_at: row.dueAt === null ? null : Math.floor(row.dueAt),
    expires_at: row.expiresAt,
    started: row.started,
    lease_token: lease?.token ?? null,
    lease_expires_at: lease?.expiresAt ?? null,
    lease_node: lease?.nodeId ?? null,
    lease_started_at: lease?.startedAt ?? null,
    lease_async: lease?.isAsync ?? null,
    settled_token: settled?.token ?? null,
    settled_verdict: settled ? verdicts.indexOf(settled.verdict) : null,
    last_error: error && JSON.stringify(error),
    error_type: error?.errorType ?? null,
    http_status: error?.httpStatus ?? null,
    ended_at: row.completedAt ?? row.deadAt,
    dead_reason: row.deadReason,
    attempts: attempts.map(attemptText),
    result: row.resultDropped ? '' : result,
    progress: row.progress && JSON.stringify(row.progress),
    unique_key: row.uniqueKey,
    unique_until: row.uniqueUntil,
    holds_key: holdsKey(row, now),
    flow: row.flow ? JSON.stringify(row.flow) : null,
    wait: row.flow?.wait ? waitKinds.indexOf(row.flow.wait.kind) + 1 : null,
    flow_rows: flowRows?.map(({ id, kind, key, value }) => {
      return { id, kind: flowRowKinds.indexOf(kind) + 1, key: withoutZeros(key), value };
    }),
  };
}

export const movedQueues = statement(
  'moved_queues',
  `SELECT q.no, q.name, q.config, q.paused, q.version, q.incarnation, q.created_at, q.changed_at,
    k.starts, coalesce((SELECT json_object_agg(m.priority, m.last_group)
      FROM millrace.low_water_marks m
      WHERE m.queue_no = q.no AND m.last_group <> '${noTurn}')::text, '{}') AS last_groups
  FROM millrace.queues q JOIN millrace.queue_locks k ON k.queue_no = q.no ORDER BY q.name`,
);

export const movedAudit = statement(
  'moved_audit',
  `SELECT seq, at, principal, action, queue, selector, count, prev_hash, hash
  FROM millrace.audit WHERE seq > $1 ORDER BY seq LIMIT $2`,
);

export const movedSize = statement(
  'moved_size',
  'SELECT coalesce(sum(pending + in_flight + dead), 0)::bigint AS size FROM millrace.counters',
);

export const readMark = statement(
  'read_mark',
  'SELECT source, last_id, last_seq, finished FROM millrace.transfers WHERE one',
);

export const writeMark = statement(
  'write_mark',
  `INSERT INTO millrace.transfers (one, source, last_id, last_seq, finished)
  VALUES (true, $1, $2, $3, $4)
  ON CONFLICT (one) DO UPDATE SET source = excluded.source, last_id = excluded.last_id,
    last_seq = excluded.last_seq, finished = excluded.finished`,
);

const fields = `(id text, queue text, handler_ref text, priority smallint, group_key text,
  created_at bigint, purged_at bigint, purged_status smallint, submitted_by text,
  content_type text, headers text, payload text, status smallint, attempt integer,
  total_attempts integer, redrive_count integer, updated_at bigint, due_at bigint,
  expires_at bigint, started boolean, lease_token text, lease_expires_at bigint, lease_node text,
  lease_started_at bigint, lease_async boolean, settled_token text, settled_verdict smallint,
  last_error text, error_type text, http_status integer, ended_at bigint, dead_reason text,
  attempts text[], result text, progress text, unique_key text, unique_until bigint,
  holds_key boolean, options text, flow text, wait smallint, flow_rows json)`;

/** $1: the tasks as a JSON array of rows with these fields. */
export const putTasks = statement(
  'put_moved_tasks',
  `WITH input AS MATERIALIZED (
    SELECT i.*, (SELECT q.no FROM millrace.queues q WHERE q.name = i.queue) AS queue_no
    FROM json_to_recordset($1::json) AS i${fields}
  ), stored AS (
    INSERT INTO millrace.tasks (id, queue, handler_ref, priority, group_key, created_at,
      first_due_at, first_expires_at, purged_at, purged_status, submitted_by, content_type,
      headers, payload, options)
    SELECT id, queue, handler_ref, priority, group_key, created_at, coalesce(due_at, created_at),
      expires_at, purged_at, purged_status, submitted_by, content_type, headers,
      decode(payload, 'base64'), options
    FROM input
  ), living AS (
    INSERT INTO millrace.live (id, queue_no, created_at, updated_at, due_at, expires_at,
      lease_expires_at, lease_started_at, attempt, total_attempts, redrive_count, stage, priority,
      settled_verdict, started, lease_async, group_key, lease_token, lease_node, settled_token,
      http_status, error_type, last_error, attempts, progress, unique_key, unique_until, labels,
      retain_ms, flow, wait)
    SELECT id, queue_no, created_at, updated_at, due_at, expires_at, lease_expires_at,
      lease_started_at, attempt, total_attempts, redrive_count, status, priority, settled_verdict,
      started, lease_async, coalesce(group_key, ''), lease_token, lease_node, settled_token,
      http_status, error_type, last_error, attempts, progress, unique_key, unique_until,
      ${optionColumns('options')}, flow, wait
    FROM input WHERE status < 3
  ), noted AS (
    INSERT INTO millrace.claims (lease_expires_at, ids)
    SELECT lease_expires_at, array_agg(id) FROM input
    WHERE lease_token IS NOT NULL GROUP BY lease_expires_at
  ), over AS (
    INSERT INTO millrace.ended (id, queue_no, ended_at, expires_at, attempt, total_attempts,
      redrive_count, outcome, http_status, settled_verdict, settled_token, dead_reason,
      handler_ref, error_type, last_error, attempts, result, progress, unique_key, unique_until,
      retained_until, flow)
    SELECT id, queue_no, ended_at, expires_at, attempt, total_attempts, redrive_count, status,
      http_status, settled_verdict, settled_token, dead_reason, handler_ref, error_type,
      last_error, attempts, result, progress, unique_key, unique_until,
      ended_at + (options::jsonb->>'retainMs')::bigint, flow
    FROM input WHERE status >= 3
  ), keys AS (
    INSERT INTO millrace.unique_keys (queue_no, key, id, held_until, handler_ref)
    SELECT queue_no, unique_key, id, unique_until, handler_ref FROM input WHERE holds_key
  ), flows AS (
    INSERT INTO millrace.flow_rows (id, kind, key, value)
    SELECT r.id, r.kind, r.key, r.value FROM input i CROSS JOIN LATERAL json_to_recordset(i.flow_rows)
      AS r(id text, kind smallint, key text, value text) WHERE i.flow_rows IS NOT NULL
  )
  INSERT INTO millrace.counters (queue_no, pending, in_flight, dead)
  SELECT queue_no, count(*) FILTER (WHERE status < 2), count(*) FILTER (WHERE status = 2),
    count(*) FILTER (WHERE status = 4)
  FROM input WHERE status IS NOT NULL GROUP BY queue_no`,
);

export const transferSessions = 'millrace-migrate';

/** The database may take this long to close the session of a killed process. */
const maxChecks = 20;
const checkIntervalMs = 250;

const others = {
  name: '',
  text: `SELECT application_name AS name, count(*) AS sessions FROM pg_catalog.pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
      AND application_name IN ('${serverSessions}', '${transferSessions}')
    GROUP BY application_name`,
};

/**
 * Refuses to transfer while servers or other transfers are connected. Call it before opening more
 * sessions.
 */
export async function refuseOthers(connections: Connections, clock: Clock): Promise<void> {
  for (let checks = 1; ; checks++) {
    const found = await namesOf(connections);
    if (found.length === 0) return;
    if (checks < maxChecks) await clock.sleep(checkIntervalMs);
    else if (found.includes(serverSessions)) {
      throw new UsageError(
        'storage: servers are connected to this database. Stop all of them first.',
      );
    } else {
      throw new UsageError('storage: another `ctl queue migrate` is running on this database.');
    }
  }
}

/** Compatible databases may not have this view. */
async function namesOf(connections: Connections): Promise<string[]> {
  try {
    const found = await connections.query<{ name: string }>(others);
    return found.map(({ name }) => name);
  } catch (error) {
    if (error instanceof StorageUnavailable) throw error;
    return [];
  }
}
