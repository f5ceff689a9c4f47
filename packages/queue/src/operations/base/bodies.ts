import type { QueueSchema } from '@millrace/contract/queue';
import type { FieldError } from '@millrace/kit/errors';
import type { Check, DocumentSchemas } from '@millrace/kit/http';
import { parseTimestamp, UnitError } from '@millrace/kit/units';
import type { Queue } from '../../core/queue.js';
import type {
  Attempt,
  FullTask,
  Task,
  TaskOptions,
  Tombstone,
  WholeTask,
} from '../../core/task.js';
import { never, type StoredSignal, type StoredStep, type TaskFlow } from '../../core/flow.js';
import type { EndedTask, TaskRun } from '../../storage/port/flow-runs.js';
import { fail, failBody } from './refusal.js';

type InvalidCode = Parameters<typeof failBody>[0];

/** Validates the body of a request against its schema in the contract. */
export interface BodyCheck<Body> {
  /** Returns the typed body, or throws a refusal with a pointer to each fault. */
  read(body: unknown): Body;
}

/** Bodies that operations validate themselves, after their own lookups. */
const bodies = {
  task: ['INVALID_TASK', 'SubmitTaskRequest'],
  redrive: ['INVALID_SELECTOR', 'RedriveSelector'],
  purge: ['INVALID_SELECTOR', 'PurgeSelector'],
  complete: ['INVALID_TASK', 'CompleteTaskRequest'],
  fail: ['INVALID_TASK', 'FailTaskRequest'],
  extend: ['INVALID_TASK', 'ExtendTaskRequest'],
  cancel: ['INVALID_TASK', 'CancelTaskRequest'],
  update: ['INVALID_TASK', 'UpdateTaskRequest'],
  cancelTasks: ['INVALID_SELECTOR', 'CancelSelector'],
  flow: ['INVALID_FLOW', 'FlowRequest'],
  steps: ['INVALID_TASK', 'RecordStepsRequest'],
  signal: ['INVALID_TASK', 'SendSignalRequest'],
  queueSignal: ['INVALID_TASK', 'SendQueueSignalRequest'],
  settleItem: ['INVALID_CLAIM', 'SettleItem'],
  claim: ['INVALID_CLAIM', 'ClaimRequest', { fillDefaults: true }],
  config: ['INVALID_CONFIG', 'QueueConfigInput', { fillDefaults: true }],
  schedule: ['INVALID_SCHEDULE', 'ScheduleInput', { fillDefaults: true }],
} as const;

type Claim = QueueSchema<'ClaimRequest'>;
type Bodies = { [Name in keyof typeof bodies]: BodyCheck<QueueSchema<(typeof bodies)[Name][1]>> };

export interface BodyChecks extends Omit<Bodies, 'claim'> {
  claim: BodyCheck<
    Required<Omit<Claim, 'handlers' | 'labels'>> & Pick<Claim, 'handlers' | 'labels'>
  >;
  /** The list alone; its items are checked one by one. */
  settle: BodyCheck<{ items: readonly unknown[] }>;
}

export function bodyChecks(schemas: DocumentSchemas): BodyChecks {
  // Compiled at startup, so that the first submit does not wait for it.
  schemas.named('SubmitTaskRequest').prepare();
  const checks = Object.entries(bodies).map(([name, [code, schema, options]]) => [
    name,
    bodyCheck(code, schemas.named(schema, options)),
  ]);
  return {
    ...(Object.fromEntries(checks) as Bodies & Pick<BodyChecks, 'claim'>),
    settle: listCheck('INVALID_CLAIM', schemas.named('SettleTasksRequest'), maxSettled),
  };
}

/** `maxItems` of SettleTasksRequest. */
const maxSettled = 100;

/** Checks everything but the items. */
function listCheck(
  code: InvalidCode,
  check: Check,
  maxItems: number,
): BodyCheck<{ items: readonly unknown[] }> {
  return {
    read: (body) => {
      const items = (body as { items?: unknown } | null)?.items;
      const shown = Array.isArray(items) ? { ...(body as object), items: [] } : body;
      if (!check.accepts(shown)) throw failBody(code, check.faults(shown));
      const list = items as readonly unknown[];
      if (list.length <= maxItems) return { items: list };
      throw failBody(code, [{ pointer: '/items', message: `must have at most ${maxItems} items` }]);
    },
  };
}

function bodyCheck<Body>(code: InvalidCode, check: Check): BodyCheck<Body> {
  return {
    read: (body) => {
      if (check.accepts(body)) return body as Body;
      throw failBody(code, check.faults(body));
    },
  };
}

export type Envelope = QueueSchema<'Envelope'>;

/** A task as the API shows it, without payload and attempts. */
export function toEnvelope(task: Task, { config }: Queue): Envelope {
  const { lastError, flow } = task;
  return {
    id: task.id,
    queue: task.queue,
    handler_ref: task.handlerRef,
    status: task.status,
    payload_content_type: task.payloadContentType,
    headers: task.headers,
    priority: task.priority,
    group_key: task.groupKey,
    attempt: task.attempt,
    total_attempts: task.totalAttempts,
    max_attempts: task.options?.maxAttempts ?? config.retry.max_attempts,
    redrive_count: task.redriveCount,
    created_at: timeText(task.createdAt),
    updated_at: timeText(task.updatedAt),
    next_attempt_at: task.dueAt === never ? null : timeOrNull(task.dueAt),
    expires_at: timeOrNull(task.expiresAt),
    lease_expires_at: timeOrNull(task.lease?.expiresAt ?? null),
    completed_at: timeOrNull(task.completedAt),
    dead_at: timeOrNull(task.deadAt),
    dead_reason: task.deadReason,
    last_error: lastError && {
      error_type: lastError.errorType,
      message: lastError.message,
      http_status: lastError.httpStatus,
      at: timeText(lastError.at),
    },
    submitted_by: task.submittedBy,
    ...(task.options && wireOptions(task.options)),
    ...(flow && toFlowFields(task, flow)),
  };
}

/** What the task decides for itself, as it was submitted. */
function wireOptions({ backoff, timeoutMs, retainMs, labels }: TaskOptions) {
  return {
    ...(backoff && {
      backoff: {
        kind: backoff.kind,
        ms: backoff.ms,
        ...(backoff.maxMs !== undefined && { max_ms: backoff.maxMs }),
        ...(backoff.jitter !== undefined && { jitter: backoff.jitter }),
      },
    }),
    ...(timeoutMs !== undefined && { timeout_ms: timeoutMs }),
    ...(retainMs !== undefined && { retain_ms: retainMs }),
    ...(labels && { labels: [...labels] }),
  };
}

function toFlowFields(
  { status, dueAt }: Task,
  { flowId, parentId, wait, steps, hasChildren }: TaskFlow,
): Pick<Envelope, 'flow_id' | 'parent_id' | 'wakes_at' | 'step_count' | 'has_children'> {
  const isSuspended = status === 'PENDING' && wait && wait.kind !== 'dependencies';
  return {
    ...(flowId !== undefined && { flow_id: flowId }),
    ...(parentId !== undefined && { parent_id: parentId }),
    ...(steps && steps.count > 0 && { step_count: steps.count }),
    ...(hasChildren && { has_children: true }),
    ...(isSuspended && { wakes_at: dueAt === never ? null : timeOrNull(dueAt) }),
  };
}

export function toStep(step: StoredStep): QueueSchema<'Step'> {
  return {
    name: step.name,
    result: jsonOrNull(step.result),
    error: step.error ?? null,
    ...(step.startedAt !== undefined && { started_at: timeText(step.startedAt) }),
    recorded_at: timeText(step.recordedAt),
  };
}

export function toSignal({ id, name, payload, receivedAt }: StoredSignal): QueueSchema<'Signal'> {
  return { id, name, payload: jsonOrNull(payload), received_at: timeText(receivedAt) };
}

function jsonOrNull(text: string | null | undefined): unknown {
  return text === undefined || text === null ? null : (JSON.parse(text) as unknown);
}

/** A task that another one depends on or waited for. */
export function toEndedTask(task: EndedTask): QueueSchema<'EndedTask'> {
  return {
    id: task.id,
    ...(task.key !== undefined && { key: task.key }),
    ...(task.handlerRef !== undefined && { handler_ref: task.handlerRef }),
    status: task.status,
    result: jsonOrNull(task.result),
    ...(task.isResultOmitted && { result_omitted: true }),
  };
}

export function toRun(run: TaskRun): QueueSchema<'TaskRun'> {
  return {
    steps: run.steps.map(toStep),
    signals: run.signals.map(toSignal),
    dependencies: run.dependencies.map(toEndedTask),
    children: run.children.map(toEndedTask),
    ...(run.wokenBy && { woken_by: run.wokenBy as QueueSchema<'WokenBy'> }),
  };
}

/** What a claim shows of a run: lists that are empty are left out. */
export function toClaimedRun(run: TaskRun): Partial<QueueSchema<'TaskRun'>> {
  const entries = Object.entries(toRun(run));
  return Object.fromEntries(
    entries.filter(([, value]) => !Array.isArray(value) || value.length > 0),
  );
}

/** A task with everything. `payload`: in another form than base64. */
export function toWholeTask(task: WholeTask, queue: Queue): QueueSchema<'Task'>;
export function toWholeTask(
  task: WholeTask,
  queue: Queue,
  payload: Uint8Array | undefined,
): Omit<QueueSchema<'Task'>, 'payload'> & { payload: string | Uint8Array };
export function toWholeTask(task: WholeTask, queue: Queue, payload?: Uint8Array) {
  return Object.assign(toEnvelope(task, queue), {
    payload: payload ?? base64Of(task.payload),
    attempts: task.attempts.map(toAttempt),
  });
}

function base64Of({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('base64');
}

/** The same with its result, progress and unique key. */
export function toFullTask(task: FullTask, queue: Queue): QueueSchema<'Task'> {
  const { result, resultDropped, progress, uniqueKey } = task;
  return Object.assign(toWholeTask(task, queue), {
    unique_key: uniqueKey,
    result: result === null ? null : (JSON.parse(result) as unknown),
    result_dropped: resultDropped,
    progress: progress && { ...progress, at: timeText(progress.at) },
  });
}

function toAttempt(attempt: Attempt): QueueSchema<'Attempt'> {
  return {
    attempt: attempt.attempt,
    redrive: attempt.redrive,
    started_at: timeText(attempt.startedAt),
    ended_at: timeText(attempt.endedAt),
    duration_ms: attempt.durationMs,
    outcome: attempt.outcome,
    error_type: attempt.errorType,
    message: attempt.message,
    http_status: attempt.httpStatus,
    retry_after_ms: attempt.retryAfterMs,
    next_attempt_at: timeOrNull(attempt.nextAttemptAt),
    response_snippet: attempt.responseSnippet,
    url: attempt.url,
    remote_ip: attempt.remoteIp,
    node_id: attempt.nodeId,
    trace_id: attempt.traceId,
  };
}

export function toTombstone(tombstone: Tombstone): QueueSchema<'Tombstone'> {
  const { id, queue, handlerRef, status } = tombstone;
  return { id, queue, handler_ref: handlerRef, status, purged: true };
}

// The tasks of one response have few different times, and a text costs more than a look-up.
const texts = new Map<number, string>();
const maxTexts = 64;

/** RFC 3339 in UTC with milliseconds. */
export function timeText(time: number): string {
  let text = texts.get(time);
  if (text === undefined) {
    text = new Date(time).toISOString();
    if (texts.size === maxTexts) texts.clear();
    texts.set(time, text);
  }
  return text;
}

/** The circuit breaker of a handler. */
export function toBreaker(breaker: {
  handler: string;
  phase: QueueSchema<'HandlerBreaker'>['state'];
  nextProbeAt: number | null;
}): QueueSchema<'HandlerBreaker'> {
  const { handler, phase: state, nextProbeAt } = breaker;
  return { handler_ref: handler, state, next_probe_at: timeOrNull(nextProbeAt) };
}

export function timeOrNull(time: number | null): string | null {
  return time === null ? null : timeText(time);
}

/** A condition on the current config for replacing it. */
export type Precondition = 'none' | 'exists' | { versions: ReadonlySet<number> };

const listed = /^\s*(?:W\/)?"[\x21\x23-\x7e]*"\s*$/;
const ours = /^\s*"(0|[1-9][0-9]{0,15})"\s*$/;
const bareVersion = /^\s*([1-9][0-9]{0,15})\s*$/;

/**
 * Parses `If-Match` (RFC 9110, section 13.1.1). A version without quotes is accepted as its tag.
 * An invalid list of tags matches nothing.
 */
export function readPrecondition(ifMatch: string | undefined): Precondition {
  if (ifMatch === undefined) return 'none';
  if (ifMatch.trim() === '*') return 'exists';
  const bare = bareVersion.exec(ifMatch)?.[1];
  const tags = bare === undefined ? ifMatch.split(',') : [`"${bare}"`];
  const versions = tags.every((tag) => listed.test(tag))
    ? tags.flatMap((tag) => Number(ours.exec(tag)?.[1] ?? Number.NaN))
    : [];
  return { versions: new Set(versions) };
}

export function requirePrecondition(
  precondition: Precondition,
  current: { version: number } | undefined,
): void {
  if (precondition === 'none') return;
  if (!current) {
    throw fail(
      'PRECONDITION_FAILED',
      'The queue does not exist yet; leave out If-Match to create it.',
    );
  }
  if (precondition === 'exists' || precondition.versions.has(current.version)) return;
  throw fail(
    'PRECONDITION_FAILED',
    `The config has version ${current.version} now; read it again and send its ETag.`,
  );
}

/** Read-only fields may be sent back as they were read, so that a body can be edited and sent. */
export function readOnlyFaults(
  given: object,
  current: Readonly<Record<string, unknown>>,
  what: string,
): FieldError[] {
  const changed = Object.entries(given).filter(
    ([key, value]) => value !== undefined && value !== current[key],
  );
  return changed.map(([key]) => {
    const value = current[key];
    const now = value === undefined ? `the ${what} does not exist yet` : `it is ${String(value)}`;
    return { pointer: `/${key}`, message: `is read-only (${now}); leave it out` };
  });
}

/**
 * Parses a time in the format of the contract. A time whose year in UTC has not four digits
 * matches the format but is refused: it adds a fault and returns NaN.
 */
export function timeIn(text: string, pointer: string, faults: FieldError[]): number {
  try {
    return parseTimestamp(text);
  } catch (error) {
    if (!(error instanceof UnitError)) throw error;
    faults.push({ pointer, message: error.message });
    return Number.NaN;
  }
}
