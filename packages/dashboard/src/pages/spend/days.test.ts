import { expect, test } from 'vitest';
import { dayByDay } from './days.js';

const shown = (entries: Parameters<typeof dayByDay>[0]) =>
  dayByDay(entries).map(({ time, usd }) => {
    const date = new Date(time * 1000);
    return `${date.getMonth() + 1}-${date.getDate()} ${usd}`;
  });

test('dayByDay: a single day is padded to a week', () => {
  const days = shown([{ key: '2026-03-02', usd: 4 }]);
  expect(days).toEqual(['2-24 0', '2-25 0', '2-26 0', '2-27 0', '2-28 0', '3-1 0', '3-2 4']);
});

test('dayByDay: includes empty days, at most the last 60', () => {
  const days = shown([
    { key: '2025-01-01', usd: 1 },
    { key: '2026-03-27', usd: 2 },
    { key: '2026-03-30', usd: 3 },
  ]);
  expect(days.length).toBe(60);
  expect(days.slice(-4)).toEqual(['3-27 2', '3-28 0', '3-29 0', '3-30 3']);
});

test('dayByDay: no entries, no days', () => {
  expect(dayByDay([])).toEqual([]);
});
