import { expect, test } from 'vitest';
import { timeText } from './table.js';

const now = Date.UTC(2026, 0, 5, 12);

test('time: is relative, or with --utc an RFC 3339 time', () => {
  expect(timeText(now - 120_000, now, {})).toBe('2m ago');
  expect(timeText(now - 120_000, now, { utc: true })).toBe('2026-01-05T11:58:00.000Z');
  expect(timeText(Number.NaN, now, { utc: true })).toBe('-');
});
