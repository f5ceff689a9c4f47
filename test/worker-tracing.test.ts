import {
  context,
  propagation,
  trace,
  TraceFlags,
  type Context,
  type Span,
} from '@opentelemetry/api';
import { AsyncLocalStorage } from 'node:async_hooks';
import { openQueue } from '@millrace/queue';
import { defineTasks } from '@millrace/worker';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';

/* The least of an OpenTelemetry SDK: contexts, the header of W3C and spans that are remembered. */

const traceId = '0af7651916cd43dd8448eb211c80319c';
const submitSpan = 'b7ad6b7169203331';
const header = `00-${traceId}-${submitSpan}-01`;
interface EndedSpan {
  name: string;
  kind: unknown;
  parent: unknown;
  failure: string | undefined;
  isSuspended: boolean;
}

const ended: EndedSpan[] = [];

beforeAll(() => {
  const storage = new AsyncLocalStorage<Context>();
  const root = context.active();
  context.setGlobalContextManager({
    active: () => storage.getStore() ?? root,
    with: (active, run, self, ...args) => storage.run(active, () => run.apply(self as never, args)),
    bind: (_, target) => target,
    enable: () => ({}) as never,
    disable: () => ({}) as never,
  });
  propagation.setGlobalPropagator({
    inject: (from, carrier, setter) => {
      const spanContext = trace.getSpanContext(from);
      if (!spanContext) return;
      const { traceId: id, spanId } = spanContext;
      setter.set(carrier, 'traceparent', `00-${id}-${spanId}-01`);
    },
    extract: (to, carrier, getter) => {
      const [, id, spanId] = String(getter.get(carrier, 'traceparent') ?? '').split('-');
      if (!id || !spanId) return to;
      return trace.setSpanContext(to, { traceId: id, spanId, traceFlags: TraceFlags.SAMPLED });
    },
    fields: () => ['traceparent'],
  });
  trace.setGlobalTracerProvider({
    getTracer: () => ({
      startSpan: () => trace.wrapSpanContext({ traceId, spanId: submitSpan, traceFlags: 1 }),
      startActiveSpan: ((
        name: string,
        options: { kind: unknown },
        parent: Context,
        run: (span: Span) => unknown,
      ) => {
        let failure: string | undefined;
        let isSuspended = false;
        const span = {
          recordException: (error: Error) => (failure = error.message),
          setStatus: () => span,
          setAttribute: (_: string, value: boolean) => (isSuspended = value),
          end: () => {
            const from = trace.getSpanContext(parent);
            ended.push({ name, kind: options.kind, parent: from, failure, isSuspended });
          },
        };
        return run(span as never);
      }) as never,
    }),
  });
});
afterAll(() => {
  context.disable();
  propagation.disable();
  trace.disable();
});

test('tracing: a handler continues the trace of its submitter, in process too', async () => {
  const tasks = defineTasks({ a: { queue: 'q', maxAttempts: 1 } });
  const queue = await openQueue({ memory: true }, tasks);
  onTestFinished(() => queue.close());
  let headers: unknown;
  queue.createWorker(
    { queue: 'q' },
    {
      a: ({ task, payload }) => {
        ({ headers } = task);
        if (payload === 'bad') throw new Error('no');
      },
    },
  );
  const parent = trace.setSpanContext(context.active(), {
    traceId,
    spanId: submitSpan,
    traceFlags: 1,
  });
  await context.with(parent, () => queue.submitAndWait('a', 'good'));
  expect(headers).toEqual({ traceparent: header });
  await expect(context.with(parent, () => queue.submitAndWait('a', 'bad'))).rejects.toThrow('no');
  expect(ended).toMatchObject([
    { name: 'process a', kind: 4, parent: { traceId, spanId: submitSpan }, failure: undefined },
    { name: 'process a', kind: 4, parent: { traceId, spanId: submitSpan }, failure: 'no' },
  ]);
});

test('tracing: the span of a run that suspends its task ends', async () => {
  ended.length = 0;
  const tasks = defineTasks({ sleeper: { queue: 'q' } });
  const queue = await openQueue({ memory: true }, tasks);
  onTestFinished(() => queue.close());
  queue.createWorker({ queue: 'q' }, { sleeper: ({ step }) => step.sleep('rest', 400) });
  await queue.submitAndWait('sleeper', null);
  expect(ended).toMatchObject([
    { name: 'process sleeper', failure: undefined, isSuspended: true },
    { name: 'process sleeper', failure: undefined, isSuspended: false },
  ]);
});
