import { expect, test } from 'vitest';
import {
  baseName,
  bytes,
  dollars,
  dollarTicks,
  duration,
  percent,
  relative,
  tokens,
  durationTicks,
  millis,
} from './format.js';

test('formats: unknown is a dash, 0 is 0', () => {
  for (const format of [tokens, dollars, percent, bytes, duration]) {
    expect(format(null)).toBe('–');
    expect(format(undefined)).toBe('–');
    expect(format(0)).toMatch(/^\$?0/);
  }
});

test('tokens: abbreviates with k, M and B', () => {
  const given = [999, 1000, 12_340, 99_949, 99_960, 999_949, 999_950, 1_234_567, 2e9];
  const shown = ['999', '1k', '12.3k', '99.9k', '100k', '1000k', '1M', '1.23M', '2B'];
  expect(given.map(tokens)).toEqual(shown);
});

test('dollars: small amounts are not rounded to 0', () => {
  expect(dollars(0.0042)).toBe('$0.004');
  expect(dollars(1.239)).toBe('$1.24');
  expect(dollars(12_345.6)).toBe('$12,346');
});

test('dollarTicks: equal steps have equal digits', () => {
  expect(dollarTicks([0, 0.002, 0.004, 0.006])).toEqual(['$0.000', '$0.002', '$0.004', '$0.006']);
  expect(dollarTicks([0, 0.0025, 0.005])).toEqual(['$0.0000', '$0.0025', '$0.0050']);
  expect(dollarTicks([0, 0.5, 1])).toEqual(['$0.00', '$0.50', '$1.00']);
  expect(dollarTicks([0, 2.5, 5])).toEqual(['$0.00', '$2.50', '$5.00']);
  expect(dollarTicks([0, 1000, 2000])).toEqual(['$0', '$1,000', '$2,000']);
});

test('bytes, percent, duration: include the unit', () => {
  expect([bytes(512), bytes(1536), bytes(3 * 2 ** 30)]).toEqual(['512 B', '1.5 KiB', '3 GiB']);
  expect([percent(0.25), percent(42.4), percent(100)]).toEqual(['0.3%', '42%', '100%']);
  expect([duration(850), duration(59_499), duration(7_500_000)]).toEqual([
    '850 ms',
    '59 s',
    '2 h 5 min',
  ]);
});

test('relative: past and future times', () => {
  expect(relative(0, 3000)).toBe('just now');
  expect(relative(0, 300_000)).toBe('5 min ago');
  expect(relative(7_200_000, 0)).toBe('in 2 h');
  expect(relative(0, 5 * 86_400_000)).toBe('5 d ago');
});

test('baseName: returns the last part of a path', () => {
  expect(['/src/mill/', '/', 'mill', 'C:\\src\\mill'].map(baseName)).toEqual([
    'mill',
    '/',
    'mill',
    'mill',
  ]);
});

test('durationTicks: one unit for the whole axis', () => {
  expect(durationTicks([0, 500, 1000, 1500])).toEqual(['0 s', '0.5 s', '1 s', '1.5 s']);
  expect(durationTicks([0, 20, 40])).toEqual(['0 ms', '20 ms', '40 ms']);
  expect(durationTicks([0, 10_000, 40_000, 60_000])).toEqual(['0 s', '10 s', '40 s', '60 s']);
});

test('millis: as many digits as a latency needs', () => {
  expect([0.42, 12.3, 1250, 90_000, null].map(millis)).toEqual([
    '0.4 ms',
    '12 ms',
    '1.25 s',
    '1 min',
    '–',
  ]);
});
