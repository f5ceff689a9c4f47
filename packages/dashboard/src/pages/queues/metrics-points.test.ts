import { expect, test } from 'vitest';
import type { MetricsPoint } from '../../queue/api.js';
import { spacedPoints } from './metrics-points.js';

const point = (second: number) => ({ ts: new Date(second * 1000).toISOString() }) as MetricsPoint;

test('spacedPoints: a gap in the history breaks the line', () => {
  const points = spacedPoints({ step_s: 10, points: [point(0), point(10), point(60)] });
  expect(points.map(({ time, point: found }) => [time, found !== undefined])).toEqual([
    [0, true],
    [10, true],
    [20, false],
    [60, true],
  ]);
});
