import fc from 'fast-check';
import type { Json, JsonObject } from '../documents.js';

/** Few names and few values, so that random filters meet random documents. */
export const names = fc.constantFrom('a', 'b', 'c', 'list', '0', '1', 'constructor');

const texts = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('', 'a', 'ab', 'abc', 'b', 'ba', 'é', '\u{1F600}') },
  fc.constantFrom('\u{FFFD}', '\u{E000}', '\u{10FFFF}', 'a\0', 'a\0b', '\0', 'a\u0001', '5'),
  fc.string({ unit: 'grapheme', maxLength: 4 }),
);
const longTexts = fc
  .tuple(fc.constantFrom('x', 'é', '\0'), fc.integer({ min: 1500, max: 1900 }), texts)
  .map(([unit, length, end]) => unit.repeat(length) + end);
const numbers = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(0, -0, 1, 2, 3, 5, -1, 1.5) },
  fc.constantFrom(2 ** 53, -(2 ** 53), 1e308, -1e308, 5e-324, -5e-324, 0.1),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);
const plain = fc.oneof(
  { weight: 1, arbitrary: fc.constant(null) },
  { weight: 1, arbitrary: fc.boolean() },
  { weight: 4, arbitrary: numbers },
  { weight: 4, arbitrary: texts },
);

const values = fc.letrec<{ value: Json; list: Json[]; object: JsonObject }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    { weight: 6, arbitrary: plain as fc.Arbitrary<Json> },
    { weight: 2, arbitrary: tie('list') },
    { weight: 2, arbitrary: tie('object') },
  ),
  list: fc.array(tie('value'), { maxLength: 3 }),
  object: fc.dictionary(names, tie('value'), { maxKeys: 3 }),
}));

/** Any JSON value, small most of the time. */
export const value: fc.Arbitrary<Json> = values.value;
/** Any JSON value, also longer than an index keeps. */
export const anyValue: fc.Arbitrary<Json> = fc.oneof(
  { weight: 9, arbitrary: value },
  { weight: 1, arbitrary: longTexts },
);
export const text: fc.Arbitrary<string> = texts;

/** A document with the fields `a`, `b`, `c` and `list` often there. */
export const document: fc.Arbitrary<JsonObject> = fc
  .record(
    {
      a: anyValue,
      b: value,
      c: value,
      list: fc.array(fc.oneof(value, values.object), { maxLength: 4 }),
    },
    { requiredKeys: [] },
  )
  .map((fields) => ({ ...fields }));
