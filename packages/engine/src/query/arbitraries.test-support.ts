import fc from 'fast-check';
import type { Json, JsonObject } from '../value/documents.js';
import type { IndexDefinition } from '../format/entries.js';
import { type Filter, filterOps, type FilterOp } from '../value/plain-query.js';
import { idOf, type TestRecord } from './memory-view.test-support.js';
import type { OrderBy } from './sort.js';

/** Few names and few values, so that random filters meet random documents. */
export const names = fc.constantFrom('a', 'b', 'c', 'list', '0', '1', 'constructor');

const texts = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('', 'a', 'ab', 'abc', 'b', 'ba', 'é', '\u{1F600}') },
  fc.constantFrom('A', 'Ab', 'aB', 'É', 'e\u0301', 'İ', 'ΑΣ', 'ΑΣΑ', 'ας', 'ασ'),
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
    { weight: 6, arbitrary: plain },
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

const paths = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('a', 'b', 'c', 'list') },
  fc.constantFrom('a.b', 'list.a', 'list.b', 'list.0', 'list.0.a', 'a.constructor', 'b.1'),
  fc.constantFrom('$id', '$key', '$rev', 'constructor'),
);

/** Conditions on the fields of an element, or on an element itself. */
const elementConditions: fc.Arbitrary<Json> = fc.oneof(
  fc.dictionary(
    fc.constantFrom('a', 'b', 'a.b'),
    fc.record({ gte: numbers, lt: numbers }, { requiredKeys: ['gte'] }),
    { minKeys: 1, maxKeys: 2 },
  ) as fc.Arbitrary<Json>,
  fc.constantFrom('a', 'b').chain((name) => plain.map((eq) => ({ [name]: { eq } }))),
  fc.record({ gte: numbers }),
  fc.record({ eq: plain.filter((one) => one !== null) }),
);

function operand(op: FilterOp): fc.Arbitrary<Json> {
  if (op === 'exists') return fc.boolean();
  if (op === 'in' || op === 'nin') return fc.array(anyValue, { maxLength: 4 });
  if (op === 'between') return fc.oneof(fc.tuple(numbers, numbers), fc.tuple(texts, texts));
  if (op === 'prefix') return fc.oneof(texts, longTexts);
  if (op === 'eqi' || op === 'startsWithi') return fc.oneof(texts, fc.constantFrom('A', 'AB', 'É'));
  if (op === 'type') return fc.constantFrom('null', 'boolean', 'number', 'text', 'array', 'object');
  if (op === 'size') return fc.integer({ min: 0, max: 3 });
  if (op === 'all') return fc.array(anyValue, { minLength: 1, maxLength: 2 });
  if (op === 'elemMatch') return elementConditions;
  if (op === 'regex') return fc.constantFrom('a', '^a', 'b$', '[ab]+', 'a|é', '^$', '.');
  return anyValue;
}

const leaf: fc.Arbitrary<Filter> = fc
  .constantFrom(...filterOps)
  .chain((op) => fc.record({ field: paths, op: fc.constant(op), value: operand(op) }))
  .map((one) => (one.field === '$id' && one.op !== 'regex' ? withId(one) : one));

/** Values that meet the ids of the test records. */
function withId(one: { field: string; op: FilterOp; value: Json }): Filter {
  const id = (given: Json) => idOf(JSON.stringify(given).length % 12);
  if (['exists', 'size', 'type', 'elemMatch'].includes(one.op)) return one;
  return { ...one, value: Array.isArray(one.value) ? one.value.map(id) : id(one.value) };
}

export const filter: fc.Arbitrary<Filter> = fc.letrec<{ filter: Filter }>((tie) => ({
  filter: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    { weight: 5, arbitrary: leaf },
    {
      weight: 3,
      arbitrary: fc.record({ and: fc.array(tie('filter'), { maxLength: 3 }) }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ or: fc.array(tie('filter'), { minLength: 1, maxLength: 3 }) }),
    },
    { weight: 1, arbitrary: fc.record({ not: tie('filter') }) },
    { weight: 1, arbitrary: fc.constant({}) },
  ),
})).filter;

export const orderBy: fc.Arbitrary<OrderBy[]> = fc.array(
  fc.record({ field: paths, desc: fc.boolean() }),
  { maxLength: 3 },
);

const indexedPaths = ['a', 'b', 'c', 'list', 'a.b', 'list.a', 'list.0', '$key', '$rev'];

/** Few conditions, so that filters imply them at times. */
const partial = fc.constantFrom<Filter>(
  { field: 'a', op: 'exists', value: true },
  { field: 'b', op: 'gt', value: 1 },
  { field: 'a', op: 'eq', value: 'a' },
  { not: { field: 'a', op: 'eq', value: 1 } },
);

export const indexes: fc.Arbitrary<IndexDefinition[]> = fc.array(
  fc.record({
    fields: fc.uniqueArray(fc.constantFrom(...indexedPaths), { minLength: 1, maxLength: 3 }),
    sparse: fc.boolean(),
    unique: fc.boolean(),
    collation: fc.option(fc.constant('ci' as const), { nil: undefined }),
    where: fc.option(partial, { nil: undefined, freq: 3 }),
  }),
  { maxLength: 4 },
);

/** Records with ids that grow, about half of them keyed. */
export const records: fc.Arbitrary<TestRecord[]> = fc
  .array(fc.record({ data: document, keyed: fc.boolean(), rev: fc.integer({ min: 1, max: 3 }) }), {
    maxLength: 12,
  })
  .map((all) =>
    all.map(({ data, keyed, rev }, n) => ({ id: idOf(n), data, rev, key: keyed ? `a${n}` : '' })),
  );

/** Records, filters and indexes around what is hard for an index: arrays and cut-off texts. */
export const hardCase = (() => {
  const stem = 'x'.repeat(1700);
  const scalar: fc.Arbitrary<Json> = fc.oneof(
    fc.integer({ min: 0, max: 4 }),
    fc.constantFrom('a', 'ab', 'b', 'ba'),
    fc.constantFrom(stem, `${stem}a`, `${stem}ab`, `${stem}b`, `${'x'.repeat(1600)}a`),
  );
  const list = fc.array(scalar, { maxLength: 3 });
  const fields = fc.constantFrom('a', 'list.a');
  // With an array anywhere the index no longer gives the order, so half of the time there is none.
  const data = fc.boolean().map((withLists) =>
    fc.record(
      {
        a: withLists ? fc.oneof(scalar, scalar, list) : scalar,
        list: fc.array(fc.record({ a: scalar }), { maxLength: withLists ? 3 : 0 }),
      },
      { requiredKeys: [] },
    ),
  );
  const ops = fc.constantFrom<FilterOp[]>(
    'eq',
    'gt',
    'gte',
    'lt',
    'lte',
    'contains',
    'exists',
    'in',
  );
  const test = fc.tuple(fields, ops, scalar).map(([field, op, given]): Filter => {
    const wanted = op === 'in' ? [given, 2] : op === 'exists' ? given === 1 : given;
    return { field, op, value: wanted };
  });
  const ranges = fc.tuple(fields, scalar, scalar).map(([field, low, high]): Filter => ({
    and: [
      { field, op: 'gt', value: low },
      { field, op: 'lte', value: high },
    ],
  }));
  const both = fc.array(fc.oneof(test, ranges), { minLength: 1, maxLength: 2 });
  return fc.record({
    records: data
      .chain((one) => fc.array(one, { maxLength: 8 }))
      .map((all): TestRecord[] =>
        all.map((each, n) => ({ id: idOf(n), data: each as JsonObject })),
      ),
    filter: fc.oneof(
      test,
      ranges,
      both.map((and): Filter => ({ and })),
      both.map((or): Filter => ({ or })),
    ),
    indexes: fc.array(
      fc.record({
        fields: fc.constantFrom(['a'], ['list.a'], ['a', 'list.a'], ['list.a', 'a']),
        sparse: fc.boolean(),
      }),
      { minLength: 1, maxLength: 2 },
    ),
    orderBy: fc.array(fc.record({ field: fields, desc: fc.boolean() }), { maxLength: 2 }),
  });
})();
