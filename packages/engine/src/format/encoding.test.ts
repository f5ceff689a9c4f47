import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Json } from '../value/documents.js';
import { anyValue, text, value } from '../query/arbitraries.test-support.js';
import { compareValues } from '../value/order.js';
import { after, EntryEncoder, maxIndexFields } from './encoding.js';

type Field = Json | undefined;
const field: fc.Arbitrary<Field> = fc.oneof(
  { weight: 1, arbitrary: fc.constant(undefined) },
  { weight: 9, arbitrary: value },
);

function encode(fields: readonly Field[]): { bytes: Buffer; cut: boolean } {
  const encoder = new EntryEncoder(fields.length).begin();
  for (const one of fields) encoder.value(one);
  return { bytes: encoder.end(), cut: encoder.cut };
}

function compareFields(a: readonly Field[], b: readonly Field[]): number {
  return a.map((one, i) => compareValues(one, b[i])).find((order) => order !== 0) ?? 0;
}

test('encoded values order as the values do', () => {
  fc.assert(
    fc.property(field, field, (a, b) => {
      const bytes = Buffer.compare(encode([a]).bytes, encode([b]).bytes);
      expect(bytes).toBe(Math.sign(compareValues(a, b)) + 0);
    }),
    { numRuns: 5000 },
  );
});

test('compound entries order field by field, also with an id behind them', () => {
  const fields = fc.tuple(field, field, field);
  const id = fc.uint8Array({ minLength: 16, maxLength: 16 });
  fc.assert(
    fc.property(fields, fields, id, id, (a, b, idA, idB) => {
      const left = Buffer.concat([encode(a).bytes, idA]);
      const right = Buffer.concat([encode(b).bytes, idB]);
      const expected = compareFields(a, b) || Buffer.compare(idA, idB);
      expect(Buffer.compare(left, right)).toBe(Math.sign(expected) + 0);
    }),
    { numRuns: 5000 },
  );
});

test('no encoded value is the beginning of another', () => {
  fc.assert(
    fc.property(field, field, (a, b) => {
      const [left, right] = [encode([a]).bytes, encode([b]).bytes];
      if (compareValues(a, b) === 0) return;
      expect(left.subarray(0, right.length).equals(right)).toBe(false);
    }),
    { numRuns: 5000 },
  );
});

test('a value that is too long is cut, and stays equal to itself alone and in order up to there', () => {
  const long = (end: string, unit = 'x') => unit.repeat(2000) + end;
  const one = encode([long('a')]);
  expect(one.cut).toBe(true);
  expect(one.bytes.equals(encode([long('a')]).bytes)).toBe(true);
  expect(one.bytes.equals(encode([long('b')]).bytes)).toBe(false);
  expect(Buffer.compare(one.bytes, encode(['x'.repeat(500)]).bytes)).toBe(1);
  expect(Buffer.compare(one.bytes, encode([long('', 'y')]).bytes)).toBe(-1);
  expect(encode(['x'.repeat(1500)]).cut).toBe(false);
  expect(encode([[long('a')], 1]).cut).toBe(true);
});

test('cut and whole values keep their order wherever they differ before the cut', () => {
  fc.assert(
    fc.property(anyValue, anyValue, (a, b) => {
      const [left, right] = [encode([a]), encode([b])];
      const order = Buffer.compare(left.bytes, right.bytes);
      if (compareValues(a, b) === 0) expect(order).toBe(0);
      else if (!left.cut || !right.cut) expect(order).toBe(Math.sign(compareValues(a, b)));
      else expect(order).not.toBe(0);
    }),
    { numRuns: 2000 },
  );
});

test('no entry grows over its bound, however many fields and however long', () => {
  for (let fields = 1; fields <= maxIndexFields; fields++) {
    const { bytes } = encode(Array<string>(fields).fill('\0'.repeat(5000)));
    expect(bytes.length).toBeLessThanOrEqual(1664);
  }
});

test('an encoder that met a huge value encodes the next one just as well', () => {
  const encoder = new EntryEncoder(1);
  encoder.begin().value('é'.repeat(600_000));
  expect(encoder.end().length).toBe(1664);
  expect(
    encoder
      .begin()
      .value(7)
      .end()
      .equals(encode([7]).bytes),
  ).toBe(true);
  expect(encoder.cut).toBe(false);
});

test('a text prefix covers exactly the strings that begin with it', () => {
  fc.assert(
    fc.property(text, anyValue, (prefix, candidate) => {
      const start = new EntryEncoder(1).begin().textPrefix(prefix).end();
      const bytes = encode([candidate]).bytes;
      const within = Buffer.compare(bytes, start) >= 0 && Buffer.compare(bytes, after(start)) < 0;
      expect(within).toBe(typeof candidate === 'string' && candidate.startsWith(prefix));
    }),
    { numRuns: 2000 },
  );
});

test('elements stand apart from values, in their own order', () => {
  const element = (item: Json) => new EntryEncoder(1).begin().element(item).end();
  fc.assert(
    fc.property(value, value, (a, b) => {
      expect(Buffer.compare(element(a), element(b))).toBe(Math.sign(compareValues(a, b)) + 0);
      expect(Buffer.compare(element(a), encode([b]).bytes)).toBe(1);
    }),
  );
});

test('what follows a prefix is the least that does not begin with it', () => {
  expect(after(Buffer.from([1, 2]))).toEqual(Buffer.from([1, 3]));
  expect(after(Buffer.from([1, 0xff, 0xff]))).toEqual(Buffer.from([2]));
  expect(() => after(Buffer.from([0xff]))).toThrow(RangeError);
});
