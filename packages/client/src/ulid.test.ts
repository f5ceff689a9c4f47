import { expect, test } from 'vitest';
import { newUlid } from './ulid.js';

test('a ULID begins with its time and is greater than the one before', () => {
  const ids = Array.from({ length: 1_000 }, () => newUlid(1_469_918_176_385));
  expect(new Set(ids).size).toBe(1_000);
  expect(ids.toSorted()).toEqual(ids);
  for (const id of ids) expect(id).toMatch(/^01ARYZ6S41[0-9A-HJKMNP-TV-Z]{16}$/);
});

test('a later ULID sorts after an earlier one', () => {
  expect(newUlid(1_000) < newUlid(1_001)).toBe(true);
});
