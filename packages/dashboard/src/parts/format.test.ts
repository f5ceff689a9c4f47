import { expect, test } from 'vitest';
import { baseName, bytes, dollars, duration, percent, relative, tokens } from './format.js';

test('the unknown is a dash and nothing is a zero', () => {
  for (const format of [tokens, dollars, percent, bytes, duration]) {
    expect(format(null)).toBe('–');
    expect(format(undefined)).toBe('–');
    expect(format(0)).toMatch(/^\$?0/);
  }
});

test('tokens are short', () => {
  const given = [999, 1000, 12_340, 99_949, 99_960, 999_949, 999_950, 1_234_567, 2e9];
  const shown = ['999', '1k', '12.3k', '99.9k', '100k', '1000k', '1M', '1.23M', '2B'];
  expect(given.map(tokens)).toEqual(shown);
});

test('small sums are not rounded to nothing', () => {
  expect(dollars(0.0042)).toBe('$0.004');
  expect(dollars(1.239)).toBe('$1.24');
  expect(dollars(12_345.6)).toBe('$12,346');
});

test('sizes, percents and durations carry their unit', () => {
  expect([bytes(512), bytes(1536), bytes(3 * 2 ** 30)]).toEqual(['512 B', '1.5 KiB', '3 GiB']);
  expect([percent(0.25), percent(42.4), percent(100)]).toEqual(['0.3%', '42%', '100%']);
  expect([duration(850), duration(59_499), duration(7_500_000)]).toEqual([
    '850 ms',
    '59 s',
    '2 h 5 min',
  ]);
});

test('times lie before or after now', () => {
  expect(relative(0, 3000)).toBe('just now');
  expect(relative(0, 300_000)).toBe('5 min ago');
  expect(relative(7_200_000, 0)).toBe('in 2 h');
  expect(relative(0, 5 * 86_400_000)).toBe('5 d ago');
});

test('the last part of a path is its name', () => {
  expect(['/src/mill/', '/', 'mill', 'C:\\src\\mill'].map(baseName)).toEqual([
    'mill',
    '/',
    'mill',
    'mill',
  ]);
});
