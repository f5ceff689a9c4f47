import { expect, test } from 'vitest';
import { inferFields } from './inferred-schema.js';

test('inferFields: paths, types and the share of records', () => {
  const records = [
    { data: { name: 'Ada', age: 36, address: { city: 'London' } } },
    { data: { name: null, age: 1.5, tags: ['a'] } },
  ];
  expect(inferFields(records)).toEqual([
    { path: 'name', types: ['string', 'null'], percent: 100 },
    { path: 'age', types: ['integer', 'number'], percent: 100 },
    { path: 'address', types: ['object'], percent: 50 },
    { path: 'address.city', types: ['string'], percent: 50 },
    { path: 'tags', types: ['array'], percent: 50 },
  ]);
});

test('inferFields: stops at depth 3', () => {
  const fields = inferFields([{ data: { a: { b: { c: { d: 1 } } } } }]);
  expect(fields.map(({ path }) => path)).toEqual(['a', 'a.b', 'a.b.c']);
});
