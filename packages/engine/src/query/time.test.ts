import { expect, test } from 'vitest';
import { parseTime, timeText } from '../value/filter.js';

test('RFC 3339 times are read to the fraction of a millisecond', () => {
  expect(parseTime('1970-01-01T00:00:00Z')).toBe(0);
  expect(parseTime('1970-01-01t00:00:01.5z')).toBe(1500);
  expect(parseTime('1970-01-01 00:00:00.0005Z')).toBe(0.5);
  expect(parseTime('1970-01-01T02:30:00+02:30')).toBe(0);
  expect(parseTime('1969-12-31T23:00:00-01:00')).toBe(0);
  expect(parseTime('2024-02-29T00:00:00Z')).toBe(Date.UTC(2024, 1, 29));
  expect(parseTime('0001-01-01T00:00:00Z')).toBe(Date.parse('0001-01-01T00:00:00Z'));
  expect(parseTime('2016-12-31T23:59:60Z')).toBe(Date.UTC(2017, 0, 1));
});

test('what is not one is not read', () => {
  const texts = [
    '',
    '2030-01-31',
    '2030-01-31T12:00Z',
    '2030-01-31T12:00:00',
    '2030-02-30T00:00:00Z',
    '2030-13-01T00:00:00Z',
    '2030-00-01T00:00:00Z',
    '2030-01-01T24:00:00Z',
    '2030-01-01T00:60:00Z',
    '2030-01-01T00:00:00+0100',
    '2030-01-01T00:00:00+24:00',
    ' 2030-01-01T00:00:00Z',
    '1893456000000',
  ];
  for (const text of texts) expect(parseTime(text), text).toBeUndefined();
});

test('times are written with milliseconds in UTC', () => {
  expect(timeText(1500)).toBe('1970-01-01T00:00:01.500Z');
});
