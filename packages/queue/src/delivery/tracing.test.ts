import { systemClock } from '@millrace/kit/clock';
import { readTraceparent, type Span } from '@millrace/kit/tracing';
import { expect, test } from 'vitest';
import { MemoryStore } from '../../test/support/memory-store/index.js';
import type { NewTask } from '../storage/port/task-store.js';
import { answer, newObserver, newScene, sampleTask } from './delivery.test-support.js';

async function tracedScene() {
  const spans: Span[] = [];
  const tracer = { record: (span: Span) => void spans.push(span), close: () => Promise.resolve() };
  const observer = newObserver(new MemoryStore(), systemClock, tracer);
  const scene = await newScene({ observer });
  const submit = async (task: Partial<NewTask> = {}) => {
    const now = scene.world.clock.now();
    const id = task.id ?? scene.world.random.ulid(now);
    const tasks = observer.inTrace([{ ...sampleTask(id, now), ...task }]);
    const results = await scene.store.insertTasks(tasks, now);
    observer.submitted(tasks, results, now);
    return { id, kind: results[0]!.kind };
  };
  const named = (kind: string) => spans.filter(({ name }) => name.startsWith(`${kind} `));
  return { ...scene, submit, spans, named };
}

test('tracing: a task has a span for its submit, each attempt and its whole life', async () => {
  const { world, putQueue, submit, outbound, named, spans, task } = await tracedScene();
  await putQueue({ retry: { max_attempts: 3, initial_backoff_ms: 1_000 } });
  outbound.handler = () => answer(500);
  const { id } = await submit();
  await world.settle();
  expect(named('callback').map(({ error }) => error === undefined)).toEqual([false]);
  expect(named('task')).toEqual([]);
  outbound.handler = () => answer(200);
  await world.runFor(1_001);
  const [whole] = named('task');
  expect(whole).toMatchObject({ error: undefined, parentSpanId: named('submit')[0]!.spanId });
  expect(named('callback').map(({ parentSpanId }) => parentSpanId)).toEqual([
    whole!.spanId,
    whole!.spanId,
  ]);
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
  // The handler continues the trace, and the history names it.
  const sent = outbound.requests.map(({ headers }) => readTraceparent(headers!['traceparent']!));
  expect(sent.map((context) => context?.spanId)).toEqual(
    named('callback').map(({ spanId }) => spanId),
  );
  expect((await task(id)).attempts[0]?.traceId).toBe(whole!.traceId);
});

test('tracing: a dead task ends its span with the error', async () => {
  const { world, putQueue, submit, outbound, named } = await tracedScene();
  await putQueue();
  outbound.handler = () => answer(500, { 'x-queue-retry': 'never' });
  await submit();
  await world.settle();
  expect(named('task')[0]?.error).toEqual(expect.stringMatching(/./));
});

test('tracing: the trace of the submitter goes on, unless it is not sampled', async () => {
  const { world, putQueue, submit, spans, named } = await tracedScene();
  await putQueue();
  const [trace, span] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'];
  await submit({ headers: { Traceparent: `00-${trace}-${span}-01` } });
  await world.settle();
  expect(named('submit')[0]).toMatchObject({ traceId: trace, parentSpanId: span });
  expect(spans).toHaveLength(3);
  await submit({ headers: { traceparent: `00-${trace}-${span}-00` } });
  await world.settle();
  expect(spans).toHaveLength(3);
});

test('tracing: a repeated submit has no second span', async () => {
  const { putQueue, submit, named } = await tracedScene();
  await putQueue();
  const { id } = await submit();
  expect((await submit({ id })).kind).toBe('existing');
  expect(named('submit')).toHaveLength(1);
});
