import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Json, JsonObject } from '../value/documents.js';
import { document } from '../query/arbitraries.test-support.js';
import type { Row } from '../value/path.js';
import { EntryEncoder } from './encoding.js';
import { compileIndex, type IndexDefinition } from './entries.js';

function row(data: JsonObject, own: Partial<Row> = {}): Row {
  const id = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
  const top = (name: string) => (Object.hasOwn(data, name) ? data[name] : undefined);
  const fields = { id, key: '', rev: 1, seq: 1, createdAt: 1, updatedAt: 2, expiresAt: 0 };
  return { ...fields, data, top, ...own };
}
const entries = (definition: IndexDefinition, data: JsonObject) =>
  compileIndex(definition).entriesOf(row(data));

const values = (...fields: (Json | undefined)[]) => {
  const encoder = new EntryEncoder(fields.length).begin();
  for (const field of fields) encoder.value(field);
  return encoder.end();
};
const element = (item: Json) => new EntryEncoder(1).begin().element(item).end();

test('a plain field has one entry', () => {
  expect(entries({ fields: ['a'] }, { a: 5 })).toEqual({
    values: [values(5)],
    multi: false,
    cut: false,
    constrained: false,
    unique: [],
  });
  expect(entries({ fields: ['a.b'] }, { a: { b: 'x' } }).values).toEqual([values('x')]);
});

test('a missing field is an entry of its own, unless the index is sparse', () => {
  expect(entries({ fields: ['a'] }, {}).values).toEqual([values(undefined)]);
  expect(entries({ fields: ['a'] }, { a: null }).values).toEqual([values(null)]);
  expect(entries({ fields: ['a'], sparse: true }, {}).values).toEqual([]);
  expect(entries({ fields: ['a'], sparse: true }, { a: null }).values).toEqual([values(null)]);
});

test('a sparse compound index leaves out only records that lack all its fields', () => {
  const definition = { fields: ['a', 'b'], sparse: true };
  expect(entries(definition, {}).values).toEqual([]);
  expect(entries(definition, { b: 1 }).values).toEqual([values(undefined, 1)]);
  expect(entries(definition, { a: 1 }).values).toEqual([values(1, undefined)]);
  expect(entries(definition, { a: [], c: 1 }).values).toHaveLength(1);
  expect(entries({ fields: ['a.x', 'b.x'], sparse: true }, { a: [], b: [] }).values).toEqual([]);
});

test('an array is entered whole and by element, each once', () => {
  const found = entries({ fields: ['tags'] }, { tags: ['x', 'y', 'x'] });
  expect(found.multi).toBe(true);
  expect(found.values).toEqual([values(['x', 'y', 'x']), element('x'), element('y')]);
  expect(entries({ fields: ['tags'] }, { tags: [] })).toMatchObject({
    values: [values([])],
    multi: true,
  });
});

test('a path through an array has an entry for each value it reaches', () => {
  const found = entries({ fields: ['list.n'] }, { list: [{ n: 1 }, { n: 2 }, { n: 1 }, {}] });
  expect(found).toMatchObject({ multi: true, values: [values(1), values(2)] });
  expect(entries({ fields: ['list.n'] }, { list: [] }).values).toEqual([values(undefined)]);
  expect(entries({ fields: ['list.1'] }, { list: ['x', 'y'] })).toMatchObject({
    multi: false,
    values: [values('y')],
  });
});

test('a compound index has every combination', () => {
  const found = entries({ fields: ['list.n', 'a'] }, { list: [{ n: 1 }, { n: 2 }], a: 'x' });
  expect(found.values).toEqual([values(1, 'x'), values(2, 'x')]);
});

describe('a unique index', () => {
  const unique = (fields: string[], data: JsonObject) => {
    const found = entries({ fields, unique: true }, data);
    expect(found.constrained).toBe(found.unique.length > 0);
    return found.unique;
  };

  test('constrains a record that has all its fields', () => {
    expect(unique(['a'], { a: 0 })).toEqual([values(0)]);
    expect(unique(['a', 'b'], { a: 0, b: false })).toEqual([values(0, false)]);
  });

  test('does not constrain a record that lacks a field or has null there', () => {
    expect(unique(['a'], {})).toEqual([]);
    expect(unique(['a'], { a: null })).toEqual([]);
    expect(unique(['a', 'b'], { a: 1 })).toEqual([]);
    expect(unique(['a', 'b'], { a: 1, b: null })).toEqual([]);
    expect(unique(['list.n', 'b'], { list: [{ n: 1 }] })).toEqual([]);
  });

  test('takes an array as a whole, but each value on the far side of one', () => {
    expect(unique(['tags'], { tags: ['x', 'y'] })).toEqual([values(['x', 'y'])]);
    expect(unique(['list.n'], { list: [{ n: 1 }, { n: null }, { n: 2 }] })).toEqual([
      values(1),
      values(2),
    ]);
  });
});

test('the record’s own fields can be indexed, but not its id and seq', () => {
  const index = compileIndex({ fields: ['$updated_at', '$key'] });
  expect(index.entriesOf(row({}, { key: 'k' })).values).toEqual([values(2, 'k')]);
  expect(compileIndex({ fields: ['$expires_at'] }).entriesOf(row({})).values).toEqual([
    values(undefined),
  ]);
  for (const fields of [['$id'], ['$seq'], ['$other'], [], ['a', 'a'], ['a..b'], ['a,b'], ['']]) {
    expect(() => compileIndex({ fields }), fields.join(' ')).toThrow('BAD_REQUEST');
  }
  const many = Array.from({ length: 17 }, (_, i) => `f${i}`);
  expect(() => compileIndex({ fields: many })).toThrow('more than 16 fields');
});

test('more than 1,000 entries of one record are refused by the name of the index', () => {
  const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);
  expect(entries({ fields: ['a'] }, { a: numbers(999) }).values).toHaveLength(1000);
  expect(() => entries({ fields: ['a'] }, { a: numbers(1000) })).toThrow(
    'BAD_DATA: The record has more than 1000 entries in the index "a"',
  );
  expect(() => entries({ fields: ['a', 'b'] }, { a: numbers(40), b: numbers(40) })).toThrow(
    'in the index "a,b"',
  );
});

test('a value too long for a key is reported as cut', () => {
  expect(entries({ fields: ['a'] }, { a: 'x'.repeat(2000) }).cut).toBe(true);
  expect(entries({ fields: ['a'] }, { a: ['x'.repeat(2000)] }).cut).toBe(true);
  expect(entries({ fields: ['a', 'b'] }, { a: 'x'.repeat(900), b: 1 }).cut).toBe(true);
});

test('entries are never twice the same, and a record has one unless an array is on its way', () => {
  const fields = fc.uniqueArray(fc.constantFrom('a', 'b', 'a.b', 'list', 'list.a', 'list.0.b'), {
    minLength: 1,
    maxLength: 3,
  });
  fc.assert(
    fc.property(fields, document, (names, data) => {
      const found = entries({ fields: names }, data);
      const texts = found.values.map((bytes) => Buffer.from(bytes).toString('hex'));
      expect(new Set(texts).size).toBe(texts.length);
      expect(texts.length).toBeGreaterThan(0);
      if (!found.multi) expect(texts).toHaveLength(1);
    }),
  );
});
