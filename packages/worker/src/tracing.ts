import { Suspended } from './errors.js';
import type { TaskInfo } from './tasks.js';

/** What is used of `@opentelemetry/api`, which is an optional peer. */
interface OpenTelemetry {
  context: { active(): unknown };
  propagation: {
    inject(context: unknown, carrier: Record<string, string>): void;
    extract(context: unknown, carrier: Readonly<Record<string, string>>): unknown;
  };
  trace: {
    getTracer(name: string): {
      startActiveSpan<Result>(
        name: string,
        options: { kind: number; attributes: Record<string, string | number> },
        context: unknown,
        run: (span: Span) => Result,
      ): Result;
    };
  };
}

interface Span {
  setAttribute(name: string, value: boolean): void;
  recordException(error: unknown): void;
  setStatus(status: { code: number; message?: string }): void;
  end(): void;
}

// SpanKind and SpanStatusCode of OpenTelemetry.
const consumer = 4;
const errorStatus = 2;

let loading: Promise<OpenTelemetry | undefined> | undefined;

function openTelemetry(): Promise<OpenTelemetry | undefined> {
  // A variable, so that no bundler and no compiler insists on the package.
  const name = '@opentelemetry/api';
  loading ??= import(name).then(
    (api: OpenTelemetry) => api,
    () => undefined,
  );
  return loading;
}

/** The headers of a task with the trace context of its submitter, if there is one. */
export async function traceHeaders(
  headers: Readonly<Record<string, string>> | undefined,
): Promise<Readonly<Record<string, string>> | undefined> {
  const api = await openTelemetry();
  if (!api) return headers;
  const carrier: Record<string, string> = {};
  api.propagation.inject(api.context.active(), carrier);
  return Object.keys(carrier).length === 0 ? headers : { ...carrier, ...headers };
}

/** Runs a handler in a span that continues the trace of the submitter. */
export async function inSpan(task: TaskInfo, run: () => Promise<unknown>): Promise<unknown> {
  const api = await openTelemetry();
  if (!api) return run();
  const attributes = {
    'messaging.system': 'millrace',
    'messaging.destination.name': task.queue,
    'messaging.message.id': task.id,
    'millrace.attempt': task.attempt,
  };
  const parent = api.propagation.extract(api.context.active(), task.headers);
  const tracer = api.trace.getTracer('@millrace/worker');
  const options = { kind: consumer, attributes };
  return tracer.startActiveSpan(`process ${task.handlerRef}`, options, parent, async (span) => {
    try {
      return await run();
    } catch (error) {
      if (error instanceof Suspended) {
        span.setAttribute('millrace.suspended', true);
      } else {
        span.recordException(error);
        span.setStatus({ code: errorStatus, message: String(error) });
      }
      throw error;
    } finally {
      span.end();
    }
  });
}
