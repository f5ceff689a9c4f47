import { expect, test } from 'vitest';
import { retryAfterMs } from './outcome.js';

const now = Date.UTC(2026, 2, 2, 9, 15, 0);

test.each([
  ['0', 0],
  ['1', 1_000],
  ['120', 120_000],
  [' 7 ', 7_000],
  ['3600', 3_600_000],
  ['3601', 3_600_000],
  ['99999999999999999999999', 3_600_000],
  ['Mon, 02 Mar 2026 09:15:30 GMT', 30_000],
  ['Monday, 02-Mar-26 09:15:30 GMT', 30_000],
  ['Mon Mar  2 09:15:30 2026', 30_000],
  ['Mon Mar 02 09:15:30 2026', 30_000],
  // The day of the week is not looked at.
  ['Sun, 02 Mar 2026 09:15:01 GMT', 1_000],
  ['Mon, 02 Mar 2026 09:14:59 GMT', 0],
  ['Sun, 06 Nov 1994 08:49:37 GMT', 0],
  ['Sunday, 06-Nov-94 08:49:37 GMT', 0],
  ['Wed, 03 Mar 2027 09:15:00 GMT', 3_600_000],
])('%s is read as %i ms', (value, expected) => {
  expect(retryAfterMs(value, now)).toBe(expected);
});

test.each([
  '',
  '-1',
  '1.5',
  '1e3',
  '0x10',
  'soon',
  'Mon, 2 Mar 2026 09:15:30 GMT',
  'Mon, 31 Feb 2026 09:15:30 GMT',
  'Mon, 02 Mär 2026 09:15:30 GMT',
  'Mon, 02 Mar 2026 24:15:30 GMT',
  'Mon, 02 Mar 2026 09:60:30 GMT',
  'Mon, 02 Mar 2026 09:15:61 GMT',
  'Mon, 02 Mar 2026 09:15:30 CET',
  '2026-03-02T09:15:30Z',
  '120, 240',
])('"%s" is not understood', (value) => {
  expect(retryAfterMs(value, now)).toBeUndefined();
});
