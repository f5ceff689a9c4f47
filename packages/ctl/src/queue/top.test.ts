import type { QueueSchema } from '@millrace/contract/queue';
import { expect, test } from 'vitest';
import { plain } from '../render/paint.js';
import { topScreen, rowOf, readRows } from './top.js';

type Point = QueueSchema<'QueueMetricsPoint'>;
const nothing = { p50: null, p95: null, p99: null };

function point(over: Partial<Point> = {}): Point {
  return {
    ts: '2026-03-02T09:15:00.000Z',
    submitted: 0,
    succeeded: 0,
    failed: 0,
    dead: 0,
    cancelled: 0,
    pending: null,
    in_flight: null,
    wait_ms: nothing,
    run_ms: nothing,
    ...over,
  };
}

const busy = rowOf('mail', {
  step_s: 10,
  points: [
    ...Array.from({ length: 54 }, () => point()),
    ...Array.from({ length: 6 }, (_, i) =>
      point({
        submitted: 150,
        succeeded: 100 + i * 10,
        failed: 5,
        dead: 1,
        wait_ms: { p50: 12, p95: 80, p99: 1_400 },
        run_ms: { p50: 35, p95: 210, p99: 480 },
      }),
    ),
    point({ submitted: 1_000_000, pending: 40, in_flight: 8 }),
  ],
});

test('rates are those of the last minute without the step under way', () => {
  expect(busy).toMatchObject({
    pending: 40,
    inFlight: 8,
    submittedPerSecond: 15,
    endedPerSecond: 12.6,
    failedPerSecond: 0.5,
    waitMs: { p50: 12 },
    runMs: { p99: 480 },
  });
  expect(busy.course).toHaveLength(60);
});

test('a screen shows a row for each queue, and more on a wide one', () => {
  const idle = rowOf('idle', { step_s: 10, points: Array.from({ length: 60 }, () => point()) });
  const rows = [busy, idle];
  expect(topScreen(rows, { columns: 90, paint: plain }, 9)).toBe(
    `
QUEUE  PENDING  IN FLIGHT  RATE/S  FAIL/S  WAIT P50  RUN P50  RATE
mail   40       8          13      0.5     12ms      35ms     ▁▁▆▆▇▇██
idle   -        -          0       0       -         -        ▁▁▁▁▁▁▁▁
`.slice(1),
  );
  const wide = topScreen(rows, { columns: 160, paint: plain }, 1);
  expect(wide).toContain('WAIT P99');
  expect(wide).toContain('and 1 more: name the queues you want to see');
  expect(topScreen([], { columns: 80, paint: plain }, 9)).toMatch(/^No queues yet/);
});

test('many queues are read a few at a time, in their order', async () => {
  let [open, most] = [0, 0];
  const api = {
    url: 'http://127.0.0.1:1',
    call: async (operation: string) => {
      if (operation === 'listQueues') return { body: names.map((name) => ({ name })) };
      most = Math.max(most, ++open);
      await new Promise((resolve) => setImmediate(resolve));
      open--;
      return { body: { step_s: 10, points: [point(), point()] } };
    },
  } as never;
  const names = Array.from({ length: 40 }, (_, n) => `q${n}`);
  const rows = await readRows(api, []);
  expect(rows.map(({ queue }) => queue)).toEqual(names);
  expect(most).toBeLessThanOrEqual(8);
});
