import { expect, test } from 'vitest';
import { cpuMsOf } from '../../../../test/support/cpu-time.js';
import { resetTimeIn } from './reset-time.js';

const now = Date.UTC(2026, 0, 15, 9, 30, 0);
const hour = 3_600_000;

test.each([
  ['{"status":"rejected","resetsAt":1768473000}', Date.UTC(2026, 0, 15, 10, 30)],
  ['"resets_at": 1768473000000', Date.UTC(2026, 0, 15, 10, 30)],
  ['"resetTime": "2026-01-15T11:00:00Z"', Date.UTC(2026, 0, 15, 11)],
  ['quotaResetTimeStamp: "2026-01-16T00:00:00.5+01:00"', Date.UTC(2026, 0, 15, 23, 0, 0, 500)],
  ['Claude AI usage limit reached|1768473000', Date.UTC(2026, 0, 15, 10, 30)],
  ['Retry-After: 90', now + 90_000],
  ['"retryDelay": "34.5s"', now + 34_500],
  ['"resets_in_seconds": 7200', now + 2 * hour],
  ['quotaResetDelay: "2h33m12s"', now + 2 * hour + 33 * 60_000 + 12_000],
  ['Your quota will reset after 2h33m12s.', now + 2 * hour + 33 * 60_000 + 12_000],
  ['Try again in 3 hours 5 minutes.', now + 3 * hour + 5 * 60_000],
  ['try again in 1 day, 2 hours and 3 minutes', now + 26 * hour + 3 * 60_000],
  ['retry in 45s', now + 45_000],
  ["You've hit your limit · resets 3pm (UTC)", Date.UTC(2026, 0, 15, 15)],
  ["You've hit your limit - resets 9:30am (UTC)", Date.UTC(2026, 0, 16, 9, 30)],
  ['resets 12am (UTC)', Date.UTC(2026, 0, 16)],
  ['resets 12:05pm (Europe/Berlin)', Date.UTC(2026, 0, 15, 11, 5)],
  ['resets 3:45pm (Asia/Kathmandu)', Date.UTC(2026, 0, 15, 10, 0)],
  ['resets Jan 17 at 5pm (UTC)', Date.UTC(2026, 0, 17, 17)],
  ['Try again at Jan 20th, 1:07 PM (UTC)', Date.UTC(2026, 0, 20, 13, 7)],
])('%s', (text, expected) => {
  expect(resetTimeIn(text, now)).toBe(expected);
});

test('a clock without a zone is the one on our own wall', () => {
  const time = resetTimeIn('resets 3pm', now)!;
  expect([new Date(time).getHours(), new Date(time).getMinutes()]).toEqual([15, 0]);
  expect(time).toBeGreaterThan(now);
  expect(time).toBeLessThanOrEqual(now + 24 * hour);
});

test('of several times the latest counts', () => {
  expect(resetTimeIn('retry in 45s ... resetsAt: 1768473000', now)).toBe(now + hour);
});

test.each([
  'You have hit your limit',
  'resets soon',
  'resets 13pm (UTC)',
  'resets 3pm (Mars/Olympus)',
  'resets Foo 12 at 3pm (UTC)',
  '"resetsAt": 1668469400',
  '"resetsAt": 9999999999',
  'resetsAt: tomorrow',
  'Retry-After: never',
  '',
])('%j names no time that we can trust', (text) => {
  expect(resetTimeIn(text, now)).toBe(undefined);
});

test('a long output is read in good time', async () => {
  const text = 'resets '.repeat(1_000) + '1 d '.repeat(1_000);
  expect(await cpuMsOf(() => resetTimeIn(text, now))).toBeLessThan(1_000);
});
