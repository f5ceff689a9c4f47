import type {
  Attempt,
  AttemptOutcome,
  DeadReason,
  FullTask,
  LastError,
  Progress,
  Task,
  TaskOptions,
  TaskStatus,
  Tombstone,
  WholeTask,
} from '../../core/task.js';
import type { TaskFlow } from '../../core/flow.js';
import { wokenByTime } from '../port/store-parts.js';
import type { Verdict } from '../port/task-store.js';
import { fixedColumns, statement } from './statement.js';

/** A task as statements return it. */
export interface TaskColumns {
  id: string;
  queue: string;
  handler_ref: string;
  content_type: string;
  headers: string;
  priority: number;
  group_key: string | null;
  created_at: number;
  submitted_by: string;
  options: string | null;
  status: number;
  attempt: number;
  total_attempts: number;
  redrive_count: number;
  updated_at: number;
  due_at: number | null;
  expires_at: number | null;
  lease_token: string | null;
  lease_expires_at: number | null;
  lease_node: string | null;
  lease_started_at: number | null;
  lease_async: boolean | null;
  last_error: string | null;
  ended_at: number | null;
  dead_reason: string | null;
  flow: string | null;
  wait: number | null;
}

export interface WholeColumns extends TaskColumns {
  payload: Buffer;
  /** A JSON array without its brackets. */
  attempts: string;
}

export interface FullColumns extends WholeColumns {
  /** JSON text, or "" if it was too large. */
  result: string | null;
  progress: string | null;
  unique_key: string | null;
}

/** The row of an id: a task, or a tombstone if it has no status. */
export interface FoundColumns extends TaskColumns {
  purged_at: number | null;
  purged_status: number | null;
  settled_token: string | null;
  settled_verdict: number | null;
}

export const statuses = { ready: 0, scheduled: 1, inFlight: 2, succeeded: 3, dead: 4 } as const;
const statusNames: readonly TaskStatus[] = ['PENDING', 'PENDING', 'IN_FLIGHT', 'SUCCEEDED', 'DEAD'];

export const verdicts = [
  'succeeded',
  'retry',
  'dead',
  'handed_back',
  'suspended',
] as const satisfies readonly Verdict['kind'][];

export function toTask(row: TaskColumns): Task {
  return {
    id: row.id,
    queue: row.queue,
    handlerRef: row.handler_ref,
    // In flight without a group: only the lease shows it.
    status: row.lease_token === null ? statusNames[row.status]! : 'IN_FLIGHT',
    payloadContentType: row.content_type,
    headers: row.headers === '{}' ? {} : (JSON.parse(row.headers) as Record<string, string>),
    priority: row.priority,
    groupKey: row.group_key,
    attempt: row.attempt,
    totalAttempts: row.total_attempts,
    redriveCount: row.redrive_count,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    dueAt: row.lease_token === null ? row.due_at : null,
    expiresAt: row.expires_at,
    lease: leaseOf(row),
    completedAt: row.status === statuses.succeeded ? row.ended_at : null,
    deadAt: row.status === statuses.dead ? row.ended_at : null,
    deadReason: row.dead_reason as DeadReason | null,
    lastError: row.last_error === null ? null : (JSON.parse(row.last_error) as LastError),
    submittedBy: row.submitted_by,
    options: optionsOf(row.options),
    flow: flowOf(row),
  };
}

export function optionsOf(text: string | null): TaskOptions | undefined {
  return text === null ? undefined : (JSON.parse(text) as TaskOptions);
}

/** A claim leaves the text as it is, and ends the wait in its column alone. */
function flowOf(row: TaskColumns): TaskFlow | null {
  if (row.flow === null) return null;
  const flow = JSON.parse(row.flow) as TaskFlow;
  if (!flow.wait || row.wait !== null) return flow;
  const wasClaimed = row.ended_at === null && (row.lease_token !== null || row.attempt > 0);
  return wasClaimed ? wokenByTime(flow) : { ...flow, wait: undefined };
}

export function toWholeTask(row: WholeColumns): WholeTask {
  const task = toTask(row) as WholeTask;
  task.payload = row.payload;
  task.attempts = attemptsOf(row.attempts);
  return task;
}

export function toFullTask(row: FullColumns): FullTask {
  const details = {
    result: row.result === '' ? null : row.result,
    resultDropped: row.result === '',
    progress: progressOf(row),
    uniqueKey: row.unique_key,
  };
  return Object.assign(toWholeTask(row), details);
}

export function progressOf({ progress }: { progress: string | null }): Progress | null {
  return progress === null ? null : (JSON.parse(progress) as Progress);
}

export function statusName(status: number): TaskStatus {
  return statusNames[status]!;
}

export function toTombstone(row: FoundColumns): Tombstone {
  return {
    id: row.id,
    queue: row.queue,
    handlerRef: row.handler_ref,
    status: statusNames[row.purged_status!]!,
    purgedAt: row.purged_at!,
  };
}

function leaseOf(row: TaskColumns): Task['lease'] {
  if (row.lease_token === null) return null;
  return {
    token: row.lease_token,
    expiresAt: row.lease_expires_at!,
    nodeId: row.lease_node!,
    startedAt: row.lease_started_at!,
    isAsync: row.lease_async!,
  };
}

/** PostgreSQL does not store zero bytes in text. */
export function withoutZeros(text: string): string {
  return text.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text;
}

/** Times are whole milliseconds; a redrive that is spread out may have fractions. */
export function wholeMs(time: number): number {
  return Math.floor(time);
}

/**
 * An attempt as stored: its values as a JSON array in this order, without trailing nulls. With field
 * names it would be three times as long, and most of what a settlement sends.
 */
type StoredAttempt = [
  attempt: number,
  redrive: number,
  startedAt: number,
  endedAt: number,
  durationMs: number,
  outcome: AttemptOutcome,
  nodeId: string,
  httpStatus?: number | null,
  url?: string | null,
  remoteIp?: string | null,
  traceId?: string | null,
  responseSnippet?: string | null,
  errorType?: string | null,
  message?: string | null,
  retryAfterMs?: number | null,
  nextAttemptAt?: number | null,
];

export function attemptText(of: Attempt): string {
  const stored: StoredAttempt = [
    of.attempt,
    of.redrive,
    of.startedAt,
    of.endedAt,
    of.durationMs,
    of.outcome,
    of.nodeId,
    of.httpStatus,
    of.url,
    of.remoteIp,
    of.traceId,
    of.responseSnippet,
    of.errorType,
    of.message,
    of.retryAfterMs,
    of.nextAttemptAt,
  ];
  return JSON.stringify(stored.slice(0, stored.findLastIndex((value) => value !== null) + 1));
}

/** Parses attempts joined by commas. Older versions wrote them with field names. */
export function attemptsOf(text: string): Attempt[] {
  if (text === '') return [];
  return (JSON.parse(`[${text}]`) as (Attempt | StoredAttempt)[]).map((stored) =>
    Array.isArray(stored) ? toAttempt(stored) : stored,
  );
}

function toAttempt(stored: StoredAttempt): Attempt {
  return {
    attempt: stored[0],
    redrive: stored[1],
    startedAt: stored[2],
    endedAt: stored[3],
    durationMs: stored[4],
    outcome: stored[5],
    errorType: stored[12] ?? null,
    message: stored[13] ?? null,
    httpStatus: stored[7] ?? null,
    retryAfterMs: stored[14] ?? null,
    nextAttemptAt: stored[15] ?? null,
    responseSnippet: stored[11] ?? null,
    url: stored[8] ?? null,
    remoteIp: stored[9] ?? null,
    nodeId: stored[6],
    traceId: stored[10] ?? null,
  };
}

const found = `t.purged_at, t.purged_status,
  coalesce(l.stage, e.outcome) AS status,
  coalesce(l.attempt, e.attempt) AS attempt,
  coalesce(l.total_attempts, e.total_attempts) AS total_attempts,
  coalesce(l.redrive_count, e.redrive_count) AS redrive_count,
  coalesce(l.updated_at, e.ended_at) AS updated_at,
  coalesce(l.expires_at, e.expires_at) AS expires_at,
  l.due_at, l.lease_token, l.lease_expires_at, l.lease_node, l.lease_started_at, l.lease_async,
  coalesce(l.last_error, e.last_error) AS last_error,
  e.ended_at, e.dead_reason,
  coalesce(l.settled_token, e.settled_token) AS settled_token,
  coalesce(l.settled_verdict, e.settled_verdict) AS settled_verdict,
  coalesce(l.flow, e.flow) AS flow, l.wait`;

const states = `LEFT JOIN LATERAL (SELECT * FROM millrace.live WHERE id = t.id OFFSET 0) l ON true
  LEFT JOIN LATERAL (SELECT * FROM millrace.ended WHERE id = t.id OFFSET 0) e ON true`;
const from = `FROM millrace.tasks t ${states} WHERE t.id = ANY($1::text[])`;

const whole = `${fixedColumns}, ${found}, t.payload,
  array_to_string(coalesce(l.attempts, e.attempts), ',') AS attempts,
  e.result, coalesce(l.progress, e.progress) AS progress,
  coalesce(l.unique_key, e.unique_key) AS unique_key`;

/** Tasks and tombstones, without payload and history. */
export const findTasks = statement('find_tasks', `SELECT ${fixedColumns}, ${found} ${from}`);

/** Tasks with their results. */
export const findResults = statement(
  'find_results',
  `SELECT ${fixedColumns}, ${found}, nullif(e.result, '') AS result ${from}`,
);

export const findWholeTasks = statement('find_whole_tasks', `SELECT ${whole} ${from}`);

/** Everything of the tasks after $1, in the order of their ids. */
export const movedTasks = statement(
  'moved_tasks',
  `SELECT ${whole}, coalesce(l.started OR l.lease_token IS NOT NULL, false) AS started,
    coalesce(l.unique_until, e.unique_until) AS unique_until,
    CASE WHEN coalesce(l.flow, e.flow) IS NOT NULL THEN (
      SELECT json_agg(json_build_array(r.id, r.kind, r.key, r.value)
        ORDER BY r.id <> t.id, r.kind, r.key) FROM millrace.flow_rows r
      WHERE r.id = t.id OR r.id = coalesce(l.flow, e.flow)::json->>'flowId' AND r.key = t.id
    ) END AS flow_rows
  FROM (SELECT * FROM millrace.tasks WHERE id > $1 ORDER BY id LIMIT $2) t ${states}
  ORDER BY t.id`,
);
