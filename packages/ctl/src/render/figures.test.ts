import { expect, test } from 'vitest';
import { barOf, dollars, rightAligned } from './figures.js';

test('dollars are shown to the cent, and a little is not nothing', () => {
  expect([0, 0.0001, 0.005, 12.5, 1234.567].map(dollars)).toEqual([
    '$0.00',
    '<$0.01',
    '$0.01',
    '$12.50',
    '$1,234.57',
  ]);
});

test('only the top looks full, and what is there at all shows', () => {
  const bars = [0, 0.001, 50, 99.9, 100, 200].map((value) => barOf(value, 100, 4));
  expect(bars).toEqual(['....', '#...', '##..', '###.', '####', '####']);
  expect(barOf(0, 0, 4)).toBe('....');
});

test('figures is below one another', () => {
  expect(rightAligned(['1', '-', '$10'])).toEqual(['  1', '  -', '$10']);
  expect(rightAligned([])).toEqual([]);
});
