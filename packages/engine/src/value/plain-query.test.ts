import { describe, expect, test } from 'vitest';
import { plainFilter, plainQuery } from './plain-query.js';

describe('plainFilter', () => {
  test('plainFilter: converts paths, operators and groups', () => {
    expect(plainFilter({ age: 3 })).toEqual({ field: 'age', op: 'eq', value: 3 });
    expect(plainFilter({ a: null, 'b.c': { gt: 1, lt: 5 } })).toEqual({
      and: [
        { field: 'a', op: 'eq', value: null },
        { field: 'b.c', op: 'gt', value: 1 },
        { field: 'b.c', op: 'lt', value: 5 },
      ],
    });
    expect(plainFilter({ a: 1, or: [{ b: 2 }, { field: 'c', op: 'exists' }] })).toEqual({
      field: 'a',
      op: 'eq',
      value: 1,
      or: [
        { field: 'b', op: 'eq', value: 2 },
        { field: 'c', op: 'exists' },
      ],
    });
    expect(plainFilter({ a: 1, b: 2, and: [{ c: 3 }], not: { d: 4 } })).toEqual({
      and: ['a', 'b', 'c'].map((field, i) => ({ field, op: 'eq', value: i + 1 })),
      not: { field: 'd', op: 'eq', value: 4 },
    });
    expect(plainFilter({ value: [1] })).toEqual({ field: 'value', op: 'eq', value: [1] });
  });

  test('plainFilter: keeps conditions and what the engine refuses', () => {
    const condition = { field: 'age', op: 'gt', value: 3 };
    expect(plainFilter(condition)).toEqual(condition);
    expect(plainFilter({ filed: 'age', op: 'gt', value: 3 })).toHaveProperty('filed');
    expect(plainFilter({})).toEqual({});
    expect(plainFilter(undefined)).toBeUndefined();
    expect(plainFilter({ and: 3 })).toEqual({ and: 3 });
  });

  test('plainFilter: never widens a filter with an undefined or empty test', () => {
    expect(() => plainFilter({ age: undefined })).toThrow('filter.age is undefined');
    expect(() => plainFilter({ age: {} })).toThrow('filter.age is empty');
    expect(() => plainFilter({ age: { gt: undefined } })).toThrow('filter.age.gt is undefined');
    expect(() => plainFilter({ or: [{ age: { gtt: 1 } }] })).toThrow(
      'filter.or[0].age has an unknown operator "gtt"',
    );
  });
});

test('plainQuery: converts the order and refuses other directions', () => {
  expect(plainQuery({ orderBy: { age: 'desc', name: 'asc' }, limit: 3 })).toEqual({
    orderBy: [
      { field: 'age', desc: true },
      { field: 'name', desc: false },
    ],
    limit: 3,
  });
  expect(() => plainQuery({ orderBy: { age: 'down' } })).toThrow('orderBy.age must be "asc"');
});
