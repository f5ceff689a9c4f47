import { expect, test } from 'vitest';
import { localOf, timestampOf } from './local-time.js';

test('timestampOf: local time to UTC and back', () => {
  const sent = timestampOf('2026-03-02T10:15');
  expect(new Date(sent).toISOString()).toBe(sent);
  expect(localOf(sent)).toBe('2026-03-02T10:15');
  expect(timestampOf('never')).toBe('');
});
