import { expect, test } from 'vitest';
import { systemClock } from './clock-and-random.js';
import { memoryLog } from './log.js';
import { openTracer, readTraceparent, spanIdOf, traceIdOf, type Span } from './tracing.js';

const span: Span = {
  traceId: traceIdOf('t'),
  spanId: spanIdOf('s'),
  parentSpanId: spanIdOf('p'),
  name: 'submit mail',
  kind: 'server',
  startMs: 1_700_000_000_123,
  endMs: 1_700_000_000_125,
  attributes: { 'millrace.queue': 'mail', attempt: 2, share: 0.5, replay: false },
};

function collector(status = 200) {
  const requests: { url: string; headers: Record<string, string>; body: any }[] = [];
  const send = (url: unknown, init: { headers: Record<string, string>; body: string }) => {
    requests.push({ url: String(url), headers: init.headers, body: JSON.parse(init.body) });
    return Promise.resolve(new Response('{}', { status }));
  };
  return { requests, send: send as unknown as typeof fetch };
}

test('tracer: there is none without an endpoint, or when it is disabled', () => {
  const parts = { clock: systemClock, log: memoryLog() };
  expect(openTracer('queue', { ...parts, environment: {} })).toBeUndefined();
  const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c', OTEL_SDK_DISABLED: 'true' };
  expect(openTracer('queue', { ...parts, environment })).toBeUndefined();
});

test('tracer: exports spans as OTLP JSON with the headers of the environment', async () => {
  const { requests, send } = collector();
  const environment = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/',
    OTEL_EXPORTER_OTLP_HEADERS: 'x-key=a%3Db, x-tenant=me',
  };
  const tracer = openTracer('queue', { clock: systemClock, log: memoryLog(), environment, send })!;
  tracer.record(span);
  tracer.record({ ...span, spanId: spanIdOf('other'), parentSpanId: undefined, error: 'it broke' });
  await tracer.close();
  expect(requests).toHaveLength(1);
  const [{ url, headers, body }] = requests as [(typeof requests)[0]];
  expect(url).toBe('http://collector:4318/v1/traces');
  expect(headers).toMatchObject({ 'x-key': 'a=b', 'x-tenant': 'me' });
  const [resource] = body.resourceSpans;
  expect(resource.resource.attributes).toEqual([
    { key: 'service.name', value: { stringValue: 'millrace-queue' } },
  ]);
  const [first, second] = resource.scopeSpans[0].spans;
  expect(first).toEqual({
    traceId: span.traceId,
    spanId: span.spanId,
    parentSpanId: span.parentSpanId,
    name: 'submit mail',
    kind: 2,
    startTimeUnixNano: '1700000000123000000',
    endTimeUnixNano: '1700000000125000000',
    attributes: [
      { key: 'millrace.queue', value: { stringValue: 'mail' } },
      { key: 'attempt', value: { intValue: '2' } },
      { key: 'share', value: { doubleValue: 0.5 } },
      { key: 'replay', value: { boolValue: false } },
    ],
    status: { code: 1 },
  });
  expect(second.status).toEqual({ code: 2, message: 'it broke' });
  expect('parentSpanId' in second).toBe(false);
});

test('tracer: a failing collector is logged once and the spans are counted', async () => {
  const log = memoryLog();
  const { send } = collector(503);
  const environment = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://c/x' };
  const tracer = openTracer('db', { clock: systemClock, log, environment, send })!;
  for (let i = 0; i < 600; i++) tracer.record(span);
  await tracer.close();
  expect(log.lines.map(({ message }) => message)).toEqual(['trace export failed']);
  expect(log.lines[0]?.fields).toMatchObject({ dropped: 512, reason: 'HTTP status 503' });
});

test('traceparent: valid ones are read, others are not', () => {
  const text = `00-${span.traceId}-${span.spanId}-01`;
  expect(readTraceparent(text)).toEqual({
    traceId: span.traceId,
    spanId: span.spanId,
    flags: '01',
  });
  for (const bad of ['', 'x', text.replace('00-', 'ff-'), `${text}-x`, text.toUpperCase()]) {
    expect(readTraceparent(bad), bad).toBeUndefined();
  }
});
