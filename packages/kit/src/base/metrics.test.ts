import { afterAll, describe, expect, test } from 'vitest';
import { createMetrics } from './metrics.js';

const metrics = createMetrics('queue');
afterAll(() => metrics.close());

test('counters count by their labels', async () => {
  const tasks = metrics.counter({
    name: 'tasks_total',
    help: 'Tasks "in"\nall.',
    labelNames: ['queue', 'status'],
  });
  tasks.inc({ queue: 'mail', status: 'DEAD' });
  tasks.inc({ queue: 'mail', status: 'DEAD' }, 2);
  tasks.of({ queue: 'a"b', status: 'x' }).inc(5);
  const text = await metrics.text();
  expect(text).toContain('# TYPE millrace_queue_tasks_total counter');
  expect(text).toContain('millrace_queue_tasks_total{queue="mail",status="DEAD"} 3');
  expect(text).toContain('millrace_queue_tasks_total{queue="a\\"b",status="x"} 5');
  expect(() => tasks.inc({ queue: 'mail', status: 'DEAD' }, -1)).toThrow('cannot be increased');
});

test('a counter without labels is there from the start', async () => {
  metrics.counter({ name: 'starts_total', help: 'Starts.' });
  expect(await metrics.text()).toContain('millrace_queue_starts_total 0');
});

test('histograms count into cumulative buckets', async () => {
  const times = metrics.histogram({
    name: 'wait_seconds',
    help: 'Waits.',
    labelNames: ['queue'],
    buckets: [0.1, 1],
  });
  const mail = times.of({ queue: 'mail' });
  for (const value of [0.05, 0.1, 0.5, 7]) mail.observe(value);
  const text = await metrics.text();
  expect(text).toContain('# TYPE millrace_queue_wait_seconds histogram');
  expect(text).toContain('millrace_queue_wait_seconds_bucket{queue="mail",le="0.1"} 2');
  expect(text).toContain('millrace_queue_wait_seconds_bucket{queue="mail",le="1"} 3');
  expect(text).toContain('millrace_queue_wait_seconds_bucket{queue="mail",le="+Inf"} 4');
  expect(text).toContain('millrace_queue_wait_seconds_sum{queue="mail"} 7.65');
  expect(text).toContain('millrace_queue_wait_seconds_count{queue="mail"} 4');
  expect(() => times.observe({ queue: 'mail' }, Number.NaN)).toThrow('cannot observe');
});

test('gauges are set, or read when asked for', async () => {
  let depth = 3;
  metrics.gauge({ name: 'depth', help: 'Depth.', read: () => depth });
  const open = metrics.gauge({ name: 'open', help: 'Open.', labelNames: ['queue'] });
  open.set({ queue: 'mail' }, 1);
  depth = 4;
  const text = await metrics.text();
  expect(text).toContain('millrace_queue_depth 4');
  expect(text).toContain('millrace_queue_open{queue="mail"} 1');
});

test('a name is taken once', () => {
  expect(() => metrics.counter({ name: 'starts_total', help: 'Again.' })).toThrow(
    'Metric millrace_queue_starts_total is already registered',
  );
});

describe('the process', () => {
  test('is measured', async () => {
    const text = await metrics.text();
    const valueOf = (name: string) =>
      Number(new RegExp(`^millrace_queue_process_${name} (\\S+)$`, 'm').exec(text)?.[1]);
    expect(valueOf('resident_memory_bytes')).toBeGreaterThan(1e6);
    expect(valueOf('heap_used_bytes')).toBeGreaterThan(1e6);
    expect(valueOf('open_handles')).toBeGreaterThanOrEqual(0);
    expect(valueOf('cpu_seconds')).toBeGreaterThan(0);
    expect(valueOf('event_loop_p99_seconds')).toBeGreaterThanOrEqual(0);
  });

  test('has its own registry per server', async () => {
    const other = createMetrics('daemon');
    expect(await other.text()).not.toContain('millrace_queue_');
    other.close();
  });
});
