import { expect, test } from 'vitest';
import { isTimestamp } from '../base/units.js';
import { isBase64 } from './schemas.js';

test.each([
  '2030-01-31T09:30:00Z',
  '2030-01-31T09:30:00.123456789Z',
  '2030-01-31t09:30:00z',
  '2030-01-31T09:30:00.5+02:00',
  '2024-02-29T00:00:00-23:59',
  '0000-01-01T00:00:00Z',
])('%s is a timestamp', (text) => {
  expect(isTimestamp(text)).toBe(true);
});

test.each([
  '2030-01-31 09:30:00Z',
  '2030-01-31T09:30:00',
  '2030-01-31T09:30Z',
  '2030-13-01T00:00:00Z',
  '2030-00-01T00:00:00Z',
  '2030-01-00T00:00:00Z',
  '2023-02-29T00:00:00Z',
  '1900-02-29T00:00:00Z',
  '2030-01-31T24:00:00Z',
  '2016-12-31T23:59:60Z',
  '2030-01-31T09:30:00+0200',
  '2030-01-31T09:30:00+24:00',
  '2030-01-31T09:30:00.Z',
  '\n2030-01-31T09:30:00Z',
  '2030-01-31T09:30:00Z\n',
])('%j is no timestamp', (text) => {
  expect(isTimestamp(text)).toBe(false);
});

test('base64 is what a strict encoder writes, for every length of the tail', () => {
  for (let length = 0; length < 64; length++) {
    const text = Buffer.alloc(length, 0xa7).toString('base64');
    expect(isBase64(text)).toBe(true);
    expect(Buffer.from(text, 'base64').toString('base64')).toBe(text);
  }
});

test.each(['a', 'ab', 'abc', 'ab=', 'ab==\n', 'YWJj\n', 'YW Jj', 'ab==YWJj', 'YWJ_', '====', '=='])(
  '%j is not base64',
  (text) => {
    expect(isBase64(text)).toBe(false);
  },
);

test('unused bits in the last character are refused', () => {
  expect(isBase64('QQ==')).toBe(true);
  expect(isBase64('QR==')).toBe(false);
  expect(isBase64('QUE=')).toBe(true);
  expect(isBase64('QUF=')).toBe(false);
  expect(isBase64('!!!!\nQUFB')).toBe(false);
});
