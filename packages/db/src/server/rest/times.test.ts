import fc from 'fast-check';
import { expect, test } from 'vitest';
import { timeText } from './json-in.js';

test('timeText: formats like Date.toISOString', () => {
  const [first, last] = [Date.UTC(-200, 0, 1), Date.UTC(10_000, 0, 1) - 1];
  fc.assert(
    fc.property(fc.integer({ min: first, max: last }), (time) => {
      expect(timeText(time)).toBe(new Date(time).toISOString());
    }),
  );
  for (const time of [0, 1, 9, 10, 59, 60, 99, 100, 999, 86_399_999, 86_400_000, -1]) {
    expect(timeText(time)).toBe(new Date(time).toISOString());
  }
});
