import { isSampled, readTraceparent, spanIdOf, traceIdOf, type Span } from '@millrace/kit/tracing';
import { headerOf } from '../core/forwarded-headers.js';
import type { Task } from '../core/task.js';
import { traceOf } from '../core/trace.js';
import type { NewTask, Settlement } from '../storage/port/task-store.js';

/**
 * The spans of a task: `submit`, one `callback` per attempt, and `task` from its submit to its end.
 * Span ids derive from the task and its leases, so that any server can record the end of a span.
 */

/** Respects the submitter's decision not to sample. */
export function isRecorded(headers: Task['headers']): boolean {
  const given = readTraceparent(headerOf(headers, 'traceparent') ?? '');
  return !given || isSampled(given);
}

/** A task without `traceparent` gets one, so that all its attempts share a trace. */
export function withTrace(task: NewTask): NewTask {
  const given = headerOf(task.headers, 'traceparent');
  if (given !== undefined && readTraceparent(given)) return task;
  const traceparent = `00-${traceIdOf(task.id)}-${submitSpanId(task.id)}-01`;
  return { ...task, headers: { ...task.headers, traceparent } };
}

const submitSpanId = (id: string) => spanIdOf(`submit ${id}`);
const taskSpanId = (id: string, redrive: number) => spanIdOf(`task ${id} ${redrive}`);

/** Undefined: the task is not part of a trace. */
export function submitSpan(
  { id, queue, handlerRef, headers }: NewTask,
  startMs: number,
  endMs: number,
): Span | undefined {
  const parent = readTraceparent(headerOf(headers, 'traceparent') ?? '');
  if (!parent) return undefined;
  const spanId = submitSpanId(id);
  return {
    traceId: parent.traceId,
    spanId,
    parentSpanId: parent.spanId === spanId ? undefined : parent.spanId,
    name: `submit ${queue}`,
    kind: 'server',
    startMs,
    endMs,
    attributes: { ...attributesOf(id, queue), 'millrace.handler': handlerRef },
  };
}

/** The spans that end with a settlement of the task. */
export function endSpans({ verdict, attempt, token }: Settlement, task: Task): Span[] {
  const { traceId, traceparent } = traceOf(task.headers, token);
  const { id, queue } = task;
  const shared = { traceId, endMs: attempt.endedAt };
  const failure = attempt.message ?? attempt.errorType ?? attempt.outcome;
  const error = attempt.outcome === 'SUCCEEDED' ? undefined : failure;
  const spanId = readTraceparent(traceparent)!.spanId;
  const callback: Span = {
    ...shared,
    spanId,
    parentSpanId: taskSpanId(id, attempt.redrive),
    name: `callback ${queue}`,
    kind: 'client',
    startMs: attempt.startedAt,
    attributes: {
      ...attributesOf(id, queue),
      'millrace.attempt': attempt.attempt,
      ...(attempt.httpStatus !== null && { 'http.response.status_code': attempt.httpStatus }),
      ...(attempt.url !== null && { 'url.full': attempt.url }),
    },
    error,
  };
  if (verdict.kind !== 'succeeded' && verdict.kind !== 'dead') return [callback];
  const whole: Span = {
    ...shared,
    spanId: taskSpanId(id, attempt.redrive),
    parentSpanId: submitSpanId(id),
    name: `task ${queue}`,
    kind: 'internal',
    startMs: task.createdAt,
    attributes: { ...attributesOf(id, queue), 'millrace.status': task.status },
    error: verdict.kind === 'dead' ? failure : undefined,
  };
  return [callback, whole];
}

function attributesOf(id: string, queue: string): Record<string, string> {
  return { 'millrace.task.id': id, 'millrace.queue': queue };
}
