import {
  isSampled,
  readTraceparent,
  spanIdOf,
  traceIdOf,
  type Span,
  type Tracer,
} from '@millrace/kit/tracing';
import type { Clock } from '@millrace/kit/clock';
import { headerOf } from '../core/forwarded-headers.js';
import type { Task } from '../core/task.js';
import { traceOf } from '../core/trace.js';
import type { InsertResult, NewTask, Settlement, SettleResult, TaskStore } from './task-store.js';

/**
 * Records the spans of a task: `submit`, one `callback` per attempt, and `task` from its submit to
 * its end. A task without `traceparent` gets one, so that all its attempts share a trace. Span ids
 * derive from the task and its leases, so that any server can record the end of a span.
 */
export function tracedStore(store: TaskStore, tracer: Tracer, clock: Clock): TaskStore {
  const traced: Pick<TaskStore, 'insertTasks' | 'settle'> = {
    async insertTasks(tasks, now) {
      const inTrace = tasks.map(withTrace);
      const results = await store.insertTasks(inTrace, now);
      inTrace.forEach((task, at) => {
        record(tracer, submitSpan(task, results[at]!, now, clock.now()), task.headers);
      });
      return results;
    },
    async settle(settlements) {
      const results = await store.settle(settlements);
      settlements.forEach((settlement, at) => {
        const result = results[at];
        if (result?.kind !== 'settled') return;
        for (const span of endSpans(settlement, result)) {
          record(tracer, span, result.task.headers);
        }
      });
      return results;
    },
  };
  return new Proxy(store, {
    get(target, name) {
      if (name === 'insertTasks' || name === 'settle') return traced[name];
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** Respects the submitter's decision not to sample. */
function record(tracer: Tracer, span: Span | undefined, headers: Task['headers']): void {
  const given = readTraceparent(headerOf(headers, 'traceparent') ?? '');
  if (span && (!given || isSampled(given))) tracer.record(span);
}

function withTrace(task: NewTask): NewTask {
  const given = headerOf(task.headers, 'traceparent');
  if (given !== undefined && readTraceparent(given)) return task;
  const traceparent = `00-${traceIdOf(task.id)}-${submitSpanId(task.id)}-01`;
  return { ...task, headers: { ...task.headers, traceparent } };
}

const submitSpanId = (id: string) => spanIdOf(`submit ${id}`);
const taskSpanId = (id: string, redrive: number) => spanIdOf(`task ${id} ${redrive}`);

function submitSpan(
  { id, queue, handlerRef, headers }: NewTask,
  result: InsertResult,
  startMs: number,
  endMs: number,
): Span | undefined {
  const parent = readTraceparent(headerOf(headers, 'traceparent') ?? '');
  // A repeated submit stores nothing; the first one has the span.
  if (!parent || result.kind !== 'stored') return undefined;
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

function endSpans({ verdict, attempt, token }: Settlement, { task }: Settled): Span[] {
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

type Settled = Extract<SettleResult, { kind: 'settled' }>;

function attributesOf(id: string, queue: string): Record<string, string> {
  return { 'millrace.task.id': id, 'millrace.queue': queue };
}
