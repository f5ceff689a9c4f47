import type { QueueSchema } from '@millrace/contract/queue';
import type { Queue } from '../../core/queue.js';
import type { Attempt, FullTask, Task, Tombstone, WholeTask } from '../../core/task.js';

export type Envelope = QueueSchema<'Envelope'>;

/** A task as the API shows it, without payload and attempts. */
export function toEnvelope(task: Task, { config }: Queue): Envelope {
  const { lastError } = task;
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
    max_attempts: config.retry.max_attempts,
    redrive_count: task.redriveCount,
    created_at: timeText(task.createdAt),
    updated_at: timeText(task.updatedAt),
    next_attempt_at: timeOrNull(task.dueAt),
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
  };
}

/** A task with everything. */
export function toWholeTask(task: WholeTask, queue: Queue): QueueSchema<'Task'> {
  const { buffer, byteOffset, byteLength } = task.payload;
  const payload = Buffer.from(buffer, byteOffset, byteLength).toString('base64');
  return Object.assign(toEnvelope(task, queue), {
    payload,
    attempts: task.attempts.map(toAttempt),
  });
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

export function timeOrNull(time: number | null): string | null {
  return time === null ? null : timeText(time);
}
