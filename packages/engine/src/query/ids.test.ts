import fc from 'fast-check';
import { expect, test } from 'vitest';
import { idBefore, idBehind, isStoredId } from '../value/filter.js';

const first = '0'.repeat(26);
const last = '7' + 'Z'.repeat(25);

test('an id has one right before and one right behind it', () => {
  expect(idBehind(first)).toBe('0'.repeat(25) + '1');
  expect(idBefore(first)).toBeUndefined();
  expect(idBehind(last)).toBeUndefined();
  expect(idBehind('0'.repeat(24) + '9Z')).toBe('0'.repeat(24) + 'A0');
  expect(idBefore('0'.repeat(24) + 'A0')).toBe('0'.repeat(24) + '9Z');
  fc.assert(
    fc.property(fc.ulid(), (id) => {
      const next = idBehind(id);
      if (next === undefined) return;
      expect(next > id).toBe(true);
      expect(isStoredId(next)).toBe(true);
      expect(idBefore(next)).toBe(id);
    }),
  );
});

test('only the stored form of an id counts', () => {
  expect(isStoredId(last)).toBe(true);
  expect(isStoredId(last.toLowerCase())).toBe(false);
  expect(isStoredId('8' + 'Z'.repeat(25))).toBe(false);
  expect(isStoredId('')).toBe(false);
});
