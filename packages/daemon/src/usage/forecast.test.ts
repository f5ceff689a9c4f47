import { expect, test } from 'vitest';
import { Forecasts } from './forecast.js';

const minute = 60_000;

/** The forecast after readings of these percentages at these minutes. */
function fullAt(readings: readonly (readonly [minutes: number, percent: number])[], resets = 300) {
  let now = 0;
  const forecasts = new Forecasts({ now: () => now });
  const window = (usedPercent: number) => ({
    scope: 'five_hour',
    label: '5-hour window',
    usedPercent,
    resetsAt: resets * minute,
    modelFamilies: null,
    models: null,
  });
  for (const [minutes, percent] of readings) {
    now = minutes * minute;
    forecasts.note('claude', [window(percent)]);
  }
  const found = forecasts.fullAt('claude', window(readings.at(-1)?.[1] ?? 0));
  return found === null ? null : found / minute;
}

test('forecast: at the rate of the readings', () => {
  expect(
    fullAt([
      [0, 10],
      [5, 20],
      [10, 30],
    ]),
  ).toBe(45);
});

test.each([
  [
    'two readings',
    [
      [0, 10],
      [20, 30],
    ],
  ],
  [
    'less than ten minutes',
    [
      [0, 10],
      [4, 20],
      [9, 30],
    ],
  ],
  [
    'no rise',
    [
      [0, 10],
      [10, 10],
      [20, 10],
    ],
  ],
  [
    'a reset in between',
    [
      [0, 80],
      [10, 90],
      [20, 5],
      [30, 6],
    ],
  ],
  [
    'a window that is full',
    [
      [0, 80],
      [10, 90],
      [20, 100],
    ],
  ],
] as const)('forecast: none with %s', (_, readings) => {
  expect(fullAt(readings)).toBeNull();
});

test('forecast: none when the window resets before', () => {
  expect(
    fullAt([
      [0, 1],
      [10, 2],
      [20, 3],
    ]),
  ).toBeNull();
});
