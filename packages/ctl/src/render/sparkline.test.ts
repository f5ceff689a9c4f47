import { expect, test } from 'vitest';
import { sparkline } from './figures.js';

test('the highest value is a full bar, and only nothing looks like nothing', () => {
  expect(sparkline([0, 1, 500, 1000], 10)).toBe('▁▂▅█');
  expect(sparkline([], 10)).toBe('');
  expect(sparkline([0, 0], 10)).toBe('▁▁');
  expect(sparkline([-5, 5], 10)).toBe('▁█');
});

test('only the latest values are shown, measured by themselves', () => {
  expect(sparkline([1000, 1, 2], 2)).toBe('▅█');
});
