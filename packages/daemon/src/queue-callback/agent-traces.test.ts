import { systemClock } from '@millrace/kit/clock';
import type { Span } from '@millrace/kit/tracing';
import { expect, test } from 'vitest';
import { memorySessions } from '../sessions/sessions.test-support.js';
import { AgentTraces } from './report.js';

const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
const parent = '00f067aa0ba902b7';

function traced() {
  const spans: Span[] = [];
  const tracer = { record: (span: Span) => void spans.push(span), close: () => Promise.resolve() };
  const sessions = memorySessions();
  const traces = new AgentTraces({ tracer, sessions, clock: systemClock });
  return { spans, sessions, traces };
}

test('agent span: it ends with the session and has a child for each tool', async () => {
  const { spans, sessions, traces } = traced();
  const { id } = sessions.add({ status: 'working' });
  await traces.begin(id, `00-${trace}-${parent}-01`);
  sessions.set(id, { status_reason: 'it uses the tool Bash' });
  sessions.set(id, { status_reason: 'it uses the tool Edit' });
  sessions.set(id, { status_reason: 'it is answering' });
  sessions.set(id, { status: 'done', exit_code: 0 });
  expect(spans.map(({ name }) => name)).toEqual([
    'tool Bash',
    'tool Edit',
    expect.stringMatching(/^agent /),
  ]);
  const [bash, , agent] = spans;
  expect(agent).toMatchObject({ traceId: trace, parentSpanId: parent, error: undefined });
  expect(bash).toMatchObject({ traceId: trace, parentSpanId: agent!.spanId });
  sessions.set(id, { status_reason: 'it uses the tool Bash' });
  expect(spans).toHaveLength(3);
});

test('agent span: a failed agent has an error', async () => {
  const { spans, sessions, traces } = traced();
  const { id } = sessions.add({ status: 'errored', exit_code: 3, last_error: 'it crashed' });
  // It ended before the delivery was answered.
  await traces.begin(id, `00-${trace}-${parent}-01`);
  expect(spans.map(({ error }) => error)).toEqual(['it crashed']);
});

test('agent span: none without a sampled trace, or after close', async () => {
  const { spans, sessions, traces } = traced();
  for (const traceparent of [undefined, 'x', `00-${trace}-${parent}-00`]) {
    const { id } = sessions.add({ status: 'working' });
    await traces.begin(id, traceparent);
    sessions.set(id, { status: 'done', exit_code: 0 });
  }
  const { id } = sessions.add({ status: 'working' });
  await traces.begin(id, `00-${trace}-${parent}-01`);
  traces.close();
  sessions.set(id, { status: 'done', exit_code: 0 });
  expect(spans).toEqual([]);
});
