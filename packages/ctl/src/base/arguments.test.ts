import { UsageError } from '@millrace/kit/errors';
import { expect, test } from 'vitest';
import { momentAgo, momentAhead, momentFromNow } from './arguments.js';

const near = (text: string | undefined, offsetMs: number) =>
  Math.abs(Date.parse(text ?? '') - Date.now() - offsetMs) < 10_000;

test('a duration counts back or ahead, a time is itself', () => {
  expect(near(momentAgo('2h', '--from'), -7_200_000)).toBe(true);
  expect(near(momentFromNow('15m', '--at'), 900_000)).toBe(true);
  expect(near(momentAhead('90d', '--expires'), 90 * 86_400_000)).toBe(true);
  expect(momentAgo('2026-03-02T10:00:00+01:00', '--from')).toBe('2026-03-02T09:00:00.000Z');
  expect(momentAgo(undefined, '--from')).toBeUndefined();
});

test.each([
  [() => momentAgo('noon', '--from'), '--from must be a duration'],
  [() => momentAgo('2026-03-02', '--from'), '--from must be an RFC 3339 time'],
  [() => momentAhead('2020-01-01T00:00:00Z', '--expires'), '--expires must be in the future'],
  [() => momentAhead('0', '--expires'), '--expires must be in the future'],
  [() => momentAhead('99999999d', '--expires'), '--expires is too far away'],
])('what is no moment is refused', (read, message) => {
  expect(read).toThrow(UsageError);
  expect(read).toThrow(message);
});
