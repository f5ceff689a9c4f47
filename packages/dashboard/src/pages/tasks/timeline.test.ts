import { expect, test } from 'vitest';
import type { Task } from '../../queue/api.js';
import { timelineOf } from './timeline.js';

const at = (second: number) => new Date(1_800_000_000_000 + second * 1000).toISOString();
const attempt = (second: number, duration_ms: number) => ({
  started_at: at(second),
  duration_ms,
  attempt: 1,
  redrive: 0,
  outcome: 'FAILED',
});
const task = (more: object) =>
  ({ created_at: at(0), status: 'DEAD', next_attempt_at: null, ...more }) as unknown as Task;

test('timelineOf: rows stand where the attempts ran', () => {
  const { rows, ticks } = timelineOf(
    task({ attempts: [attempt(0, 10_000), attempt(50, 50_000)] }),
    {},
    0,
  );
  expect(rows.map(({ left, width }) => [left, width])).toEqual([
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
  expect(timelineOf(pending, {}, 0).rows[0]).toMatchObject({ left: 25, width: 25 });
});

test('timelineOf: a task without attempts has an empty axis', () => {
  expect(timelineOf(task({ attempts: [] }), {}, 0).rows).toEqual([]);
});

test('timelineOf: steps, sleeps, children and the wait are rows in the order of their starts', () => {
  const suspended = task({ status: 'PENDING', attempts: [], updated_at: at(80) });
  const step = (name: string, second: number, more: object = {}) => {
    return { name, result: null, error: null, recorded_at: at(second), ...more };
  };
  const run = {
    steps: [
      step('charge', 10, { started_at: at(5) }),
      step('rest', 10, { result: { until: Date.parse(at(40)) } }),
      step('pack', 50, { error: { type: 'FULL', message: 'no room' } }),
    ],
    signals: [],
    dependencies: [],
    children: [],
    wait: { kind: 'signal' as const, signals: ['approved'] },
  };
  const tree = { id: 'P', children: [{ id: 'C', handler_ref: 'mail', created_at: at(20) }] };
  const { rows } = timelineOf(suspended, { run, tree }, Date.parse(at(100)));
  expect(rows.map(({ kind, name, left, width, tone }) => [kind, name, left, width, tone])).toEqual([
    ['step', 'charge', 5, 5, 'good'],
    ['sleep', 'rest', 10, 30, 'calm'],
    ['child', 'mail', 20, 80, 'calm'],
    ['step', 'pack', 50, 0, 'bad'],
    ['wait', 'Waits for approved', 80, 20, 'calm'],
  ]);
});
