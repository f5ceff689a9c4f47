import { expect, test } from 'vitest';
import type { Task } from '../../queue/api.js';
import { timelineOf } from './timeline.js';

const at = (second: number) => new Date(1_800_000_000_000 + second * 1000).toISOString();
const attempt = (second: number, duration_ms: number) => ({ started_at: at(second), duration_ms });
const task = (more: object) =>
  ({ created_at: at(0), status: 'DEAD', next_attempt_at: null, ...more }) as unknown as Task;

test('timelineOf: bars stand where the attempts ran', () => {
  const { bars, ticks } = timelineOf(
    task({ attempts: [attempt(0, 10_000), attempt(50, 50_000)] }),
    0,
  );
  expect(bars.map(({ left, width }) => [left, width])).toEqual([
    [0, 10],
    [50, 50],
  ]);
  expect(ticks.map(({ left, afterMs }) => [left, afterMs])).toEqual([
    [0, 0],
    [30, 30_000],
    [60, 60_000],
    [90, 90_000],
  ]);
});

test('timelineOf: the axis of a pending task ends at its next attempt', () => {
  const pending = task({
    status: 'PENDING',
    next_attempt_at: at(40),
    attempts: [attempt(10, 10_000)],
  });
  expect(timelineOf(pending, 0).bars[0]).toMatchObject({ left: 25, width: 25 });
});

test('timelineOf: a task without attempts has an empty axis', () => {
  expect(timelineOf(task({ attempts: [] }), 0).bars).toEqual([]);
});
