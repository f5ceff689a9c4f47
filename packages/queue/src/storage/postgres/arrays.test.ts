import { expect, test } from 'vitest';
import { bigintArray, integerArray, smallintArray, textArray } from './batches.js';

const head = (oid: number, count: number, hasNull = 0) => {
  const buffer = Buffer.alloc(20);
  [1, hasNull, oid, count, 1].forEach((value, i) => buffer.writeInt32BE(value, i * 4));
  return buffer.toString('hex');
};

test('a list of text is its head and each text behind its length in bytes', () => {
  expect(textArray(['ab', '', 'ü€😀']).toString('hex')).toBe(
    `${head(25, 3)}000000026162${'00000000'}00000009c3bce282acf09f9880`,
  );
});

test('what is null has no length, and the head says that there is one', () => {
  expect(textArray([null, 'a']).toString('hex')).toBe(`${head(25, 2, 1)}ffffffff0000000161`);
  expect(bigintArray([null]).toString('hex')).toBe(`${head(20, 1, 1)}ffffffff`);
});

test('numbers have the bytes of their type', () => {
  expect(smallintArray([9, -1]).toString('hex')).toBe(`${head(21, 2)}00000002000900000002ffff`);
  expect(integerArray([70_000]).toString('hex')).toBe(`${head(23, 1)}0000000400011170`);
});

test.each([
  0,
  1,
  -1,
  2 ** 32,
  2 ** 32 - 1,
  -(2 ** 32) - 1,
  1_700_000_000_000,
  2 ** 53 - 1,
  -(2 ** 53) + 1,
])('a large number is kept to the last digit: %d', (value) => {
  expect(bigintArray([value]).readBigInt64BE(24)).toBe(BigInt(value));
});

test('what is no whole number, or too large a one, is refused', () => {
  expect(() => bigintArray([1.5])).toThrow(RangeError);
  expect(() => bigintArray([2 ** 53])).toThrow(RangeError);
  expect(() => smallintArray([40_000])).toThrow(RangeError);
});
