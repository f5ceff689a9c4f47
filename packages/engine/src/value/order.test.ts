import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Json } from './documents.js';
import { value } from '../query/arbitraries.test-support.js';
import { compareText, compareValues, equalValues, ordersByUnit } from './order.js';

test('values order null, booleans, numbers, strings, arrays, objects, and missing before all', () => {
  const inOrder: (Json | undefined)[] = [
    undefined,
    null,
    false,
    true,
    -1e308,
    -1,
    0,
    5e-324,
    1,
    1e308,
    '',
    '\0',
    'a',
    'a\0',
    'ab',
    'b',
    '\u{FFFD}',
    '\u{1F600}',
    [],
    [null],
    [1],
    [1, 'a'],
    [2],
    ['a'],
    [[]],
    {},
    { a: 1 },
    { a: 1, b: 1 },
    { a: 2 },
    { b: 0 },
  ];
  inOrder.forEach((left, i) => {
    inOrder.forEach((right, j) => {
      expect(Math.sign(compareValues(left, right)), `${i} and ${j}`).toBe(Math.sign(i - j));
    });
  });
});

test('-0 is 0, and the order of an object’s fields does not matter', () => {
  expect(compareValues(-0, 0)).toBe(0);
  expect(equalValues(-0, 0)).toBe(true);
  expect(compareValues({ a: 1, b: 2 }, { b: 2, a: 1 })).toBe(0);
  expect(equalValues({ a: 1, b: [2] }, { b: [2], a: 1 })).toBe(true);
  expect(equalValues({ a: 1 }, { a: 1, b: 1 })).toBe(false);
  expect(equalValues({ a: 1, b: 1 }, { a: 1, c: 1 })).toBe(false);
  expect(equalValues([1, 2], [1])).toBe(false);
  expect(equalValues([], {})).toBe(false);
  expect(equalValues(5, '5')).toBe(false);
});

test('strings order as their UTF-8 bytes do', () => {
  const anyText = fc.string({ unit: 'binary' });
  fc.assert(
    fc.property(anyText, anyText, (a, b) => {
      const bytes = Buffer.compare(Buffer.from(a), Buffer.from(b));
      expect(Math.sign(compareText(a, b))).toBe(bytes);
      if (ordersByUnit(a) || ordersByUnit(b)) expect(a < b).toBe(bytes < 0);
    }),
    { numRuns: 2000 },
  );
});

test('the order is total and agrees with equality', () => {
  fc.assert(
    fc.property(value, value, value, (a, b, c) => {
      expect(Math.sign(compareValues(a, b))).toBe(-Math.sign(compareValues(b, a)) + 0);
      expect(compareValues(a, b) === 0).toBe(equalValues(a, b));
      if (compareValues(a, b) <= 0 && compareValues(b, c) <= 0) {
        expect(compareValues(a, c)).toBeLessThanOrEqual(0);
      }
    }),
    { numRuns: 2000 },
  );
});
