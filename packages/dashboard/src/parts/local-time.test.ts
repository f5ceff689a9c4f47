import { expect, test } from 'vitest';
import { isWholeLocal, localOf, timestampOf } from './local-time.js';

test('timestampOf: local time to UTC and back', () => {
  const sent = timestampOf('2026-03-02T10:15');
  expect(new Date(sent).toISOString()).toBe(sent);
  expect(localOf(sent)).toBe('2026-03-02T10:15');
  expect(timestampOf('never')).toBe('');
});

test('isWholeLocal: a year that is being typed is not whole, and survives the way back', () => {
  expect(isWholeLocal('2026-03-02T10:15')).toBe(true);
  expect(isWholeLocal('0202-03-02T10:15')).toBe(false);
  expect(isWholeLocal('')).toBe(false);
  expect(localOf(timestampOf('0202-03-02T10:15'))).toBe('0202-03-02T10:15');
});
