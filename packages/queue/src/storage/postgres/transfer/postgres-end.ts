import type { AuditRecord } from '../../../core/audit.js';
import type { Starts } from '../../../core/start-window.js';
import type { Row } from '../../port/task-store.js';
import type { TaskRow } from '../../port/task-row.js';
import { auditValues, toRecord, type AuditColumns } from '../rows/audit.js';
import type { Connections, Transaction } from '../connection/connections.js';
import { toQueue, type QueueColumns } from '../rows/queue-acts.js';
import { listRows, storeRows } from '../rows/rows.js';
import {
  progressOf,
  statuses,
  toTask,
  toTombstone,
  verdicts,
  withoutZeros,
  type FoundColumns,
  type WholeColumns,
} from '../rows/task-columns.js';
import { attemptsOf, attemptText } from '../rows/history.js';
import { addAudit } from '../statements/audit.sql.js';
import { createQueue } from '../statements/queues.sql.js';
import { movedTasks } from '../statements/find-tasks.sql.js';
import * as sql from './statements.sql.js';
import {
  holdsKey,
  isMovedTask,
  movedRow,
  movedTables,
  type Mark,
  type Moved,
  type MovedQueue,
  type MovedTask,
  type Target,
} from '../../transfer/moved.js';

type MovedColumns = FoundColumns &
  WholeColumns & {
    started: boolean;
    result: string | null;
    progress: string | null;
    unique_key: string | null;
    unique_until: number | null;
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
    >(sql.movedQueues);
    const own: Row[] = [];
    for (const table of movedTables) {
      own.push(...(await listRows(this.connections, { table, hasBodies: true })));
    }
    return rows.map((row) => {
      const turns = Object.entries(JSON.parse(row.last_groups) as Record<number, string>);
      return {
        queue: toQueue(row),
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
    const rows = await this.connections.query<AuditColumns>(sql.movedAudit, [afterSeq, limit]);
    return rows.map(toRecord);
  }

  async size(): Promise<number> {
    const [row] = await this.connections.query<{ size: number }>(sql.movedSize);
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
    return this.#write(mark, (transaction) =>
      transaction.query(sql.putTasks, [JSON.stringify(rows)]),
    );
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
      await transaction.queryLast(sql.writeMark, [source, lastId, lastSeq, finished]);
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
  }>(sql.readMark);
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
  return { row: movedRow(task), payload: row.payload, attempts: attemptsOf(row.attempts), result };
}

function statusNumber(status: TaskRow['status']): number {
  return { PENDING: 0, IN_FLIGHT: 2, SUCCEEDED: 3, DEAD: 4 }[status];
}

function columnsOf({ row, payload, attempts, result }: MovedTask, now: number) {
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
  };
}
