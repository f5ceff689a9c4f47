import { expect, test } from 'vitest';
import type { JsonObject } from '../value/documents.js';
import { parsePath } from '../value/path.js';
import { compileProjection, rowOf } from './query.js';

const data: JsonObject = {
  name: 'Ada',
  address: { city: 'London', zip: { code: 'W1', ext: 1 } },
  tags: ['x', 'y', 'z'],
  items: [{ sku: 'a', n: 1 }, { sku: 'b' }, 'loose', { n: 3 }],
};
const keep = (...fields: string[]) =>
  compileProjection(fields.map((field) => parsePath(field, (text) => new Error(text))))(
    rowOf(data),
  );

test('fields keep their place in the document', () => {
  expect(keep('name')).toEqual({ name: 'Ada' });
  expect(keep('address.zip.code', 'name')).toEqual({
    name: 'Ada',
    address: { zip: { code: 'W1' } },
  });
});

test('what is not there is left out', () => {
  expect(keep('none', 'address.none', 'name.first', 'constructor')).toEqual({});
});

test('a field and a part of it give the whole field', () => {
  expect(keep('address', 'address.city')).toEqual({ address: data['address'] });
  expect(keep('address.city', 'address')).toEqual({ address: data['address'] });
});

test('in an array a name keeps that part of every element, a number that element', () => {
  expect(keep('items.sku')).toEqual({ items: [{ sku: 'a' }, { sku: 'b' }] });
  expect(keep('tags.1')).toEqual({ tags: ['y'] });
  expect(keep('items.0.n', 'items.3')).toEqual({ items: [{ n: 1 }, { n: 3 }] });
  expect(keep('tags.name')).toEqual({});
});
