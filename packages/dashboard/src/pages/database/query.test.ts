import { describe, expect, test } from 'vitest';
import { emptyDraft, queryOf, type Row } from './query.js';

const row = (field: string, op: string, value: string, id = 1): Row => ({ id, field, op, value });
const of = (...rows: Row[]) => queryOf({ ...emptyDraft, rows });
const condition = (op: string, value: string) => of(row('a', op, value)).filter?.value;

test('queryOf: an empty draft matches everything', () => {
  expect(of()).toEqual({});
});

test('queryOf: joins several rows with and, or with or', () => {
  const rows = [row('age', 'gt', '18'), row('name', 'eq', 'Ada')];
  const conditions = [
    { field: 'age', op: 'gt', value: 18 },
    { field: 'name', op: 'eq', value: 'Ada' },
  ];
  expect(of(rows[0]!)).toEqual({ filter: conditions[0] });
  expect(of(...rows)).toEqual({ filter: { and: conditions } });
  expect(queryOf({ ...emptyDraft, rows, match: 'any' })).toEqual({ filter: { or: conditions } });
});

test('queryOf: a search has its own order', () => {
  const rows = [row('age', 'gt', '18')];
  const query = queryOf({ ...emptyDraft, rows, search: ' durable ', sortBy: 'age' });
  expect(query).toEqual({ filter: { field: 'age', op: 'gt', value: 18 }, search: 'durable' });
});

test('queryOf: includes the sort', () => {
  const query = queryOf({ ...emptyDraft, sortBy: ' age ', descending: true });
  expect(query).toEqual({ order_by: [{ field: 'age', desc: true }] });
});

describe('queryOf: value', () => {
  test.each([
    ['eq', '18', 18],
    ['eq', '"18"', '18'],
    ['eq', 'true', true],
    ['eq', 'null', null],
    ['eq', ' two words ', 'two words'],
    ['eq', '', ''],
    ['prefix', '18', '18'],
    ['regex', '^a.*', '^a.*'],
    ['in', '1, two, "3"', [1, 'two', '3']],
    ['in', '["a, b", 2]', ['a, b', 2]],
    ['in', '', []],
    ['between', '1,5', [1, 5]],
    ['exists', '', true],
    ['exists', 'false', false],
  ])('%s %s', (op, text, value) => {
    expect(condition(op, text)).toEqual(value);
  });
});

test.each([
  [row('', 'eq', '1', 7), 'Enter a field name'],
  [row('a', 'between', '1', 7), 'two values'],
  [row('a', 'exists', 'perhaps', 7), 'true or false'],
])('queryOf: reports the invalid row: %o', (bad, message) => {
  expect(() => of(bad)).toThrow(expect.objectContaining({ rowId: 7 }));
  expect(() => of(bad)).toThrow(message);
});
