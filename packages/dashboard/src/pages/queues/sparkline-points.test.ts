import { expect, test } from 'vitest';
import { sparklinePoints } from './sparkline-points.js';

test('sparklinePoints: from the left to the right, 0 at the bottom', () => {
  expect(sparklinePoints([0, 5, 10], 100, 22)).toBe('0,21 50,11 100,1');
  expect(sparklinePoints([0, 0], 10, 22)).toBe('0,21 10,21');
});
