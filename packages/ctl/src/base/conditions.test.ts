import { UsageError } from '@millrace/kit/errors';
import { expect, test } from 'vitest';
import { parseConditions } from './conditions.js';

const cases: [string, object][] = [
  ['age=36', { field: 'age', op: 'eq', value: 36 }],
  ['age!=36', { field: 'age', op: 'ne', value: 36 }],
  ['age>30', { field: 'age', op: 'gt', value: 30 }],
  ['age>=30.5', { field: 'age', op: 'gte', value: 30.5 }],
  ['age<-1e3', { field: 'age', op: 'lt', value: -1000 }],
  ['age<=30', { field: 'age', op: 'lte', value: 30 }],
  ['name^=A', { field: 'name', op: 'prefix', value: 'A' }],
  ['zip^=80', { field: 'zip', op: 'prefix', value: '80' }],
  ['tags~x', { field: 'tags', op: 'contains', value: 'x' }],
  ['sizes~5', { field: 'sizes', op: 'contains', value: 5 }],
  ['tags!~x', { not: { field: 'tags', op: 'contains', value: 'x' } }],
  ['name=~^(A|B)', { field: 'name', op: 'regex', value: '^(A|B)' }],
  ['email?', { field: 'email', op: 'exists', value: true }],
  ['email!?', { field: 'email', op: 'exists', value: false }],
  ['city=Bern,Oslo', { field: 'city', op: 'in', value: ['Bern', 'Oslo'] }],
  ['n!=1,2', { field: 'n', op: 'nin', value: [1, 2] }],
  ['age=20..30', { field: 'age', op: 'between', value: [20, 30] }],
  [
    '$created_at=2030-01-01T00:00:00Z..2031-01-01T00:00:00Z',
    {
      field: '$created_at',
      op: 'between',
      value: ['2030-01-01T00:00:00Z', '2031-01-01T00:00:00Z'],
    },
  ],
  ['open=true', { field: 'open', op: 'eq', value: true }],
  ['gone=null', { field: 'gone', op: 'eq', value: null }],
  ['zip="8001"', { field: 'zip', op: 'eq', value: '8001' }],
  ["zip='8001'", { field: 'zip', op: 'eq', value: '8001' }],
  ['id=007', { field: 'id', op: 'eq', value: '007' }],
  ['name="Lovelace, Ada"', { field: 'name', op: 'eq', value: 'Lovelace, Ada' }],
  ['name="Lovelace, Ada",Bob', { field: 'name', op: 'in', value: ['Lovelace, Ada', 'Bob'] }],
  ['tags=["a","b"]', { field: 'tags', op: 'eq', value: ['a', 'b'] }],
  ['address.city=Bern', { field: 'address.city', op: 'eq', value: 'Bern' }],
  ['items.0.sku=x', { field: 'items.0.sku', op: 'eq', value: 'x' }],
  ['url=http://a?b=c', { field: 'url', op: 'eq', value: 'http://a?b=c' }],
  ['name=Ada Lovelace', { field: 'name', op: 'eq', value: 'Ada Lovelace' }],
  ['note="=5"', { field: 'note', op: 'eq', value: '=5' }],
  ['name=', { field: 'name', op: 'eq', value: '' }],
];

test.each(cases)('%s', (text, filter) => {
  expect(parseConditions([text])).toEqual(filter);
});

test('several conditions must all hold, in one argument or in many', () => {
  const filter = {
    and: [
      { field: 'age', op: 'gt', value: 30 },
      { field: 'city', op: 'eq', value: 'Bern' },
    ],
  };
  expect(parseConditions(['age>30', 'city=Bern'])).toEqual(filter);
  expect(parseConditions(['age>30 city=Bern'])).toEqual(filter);
  expect(parseConditions(['age>30', 'and', 'city=Bern'])).toEqual(filter);
  expect(parseConditions([])).toBeUndefined();
});

test('or, not and brackets', () => {
  const [a, b, c] = ['a', 'b', 'c'].map((field) => ({ field, op: 'eq', value: 1 }));
  expect(parseConditions(['a=1', 'b=1', 'or', 'c=1'])).toEqual({ or: [{ and: [a, b] }, c] });
  expect(parseConditions(['a=1 (b=1 or c=1)'])).toEqual({ and: [a, { or: [b, c] }] });
  expect(parseConditions(['(a=1', 'or', 'b=1)', 'c=1'])).toEqual({ and: [{ or: [a, b] }, c] });
  expect(parseConditions(['not', 'a=1', 'b=1'])).toEqual({ and: [{ not: a }, b] });
  expect(parseConditions(['not (a=1 b=1)'])).toEqual({ not: { and: [a, b] } });
});

test.each([
  [[''], 'A condition is empty'],
  [['a=1', ' '], 'A condition is empty'],
  [['agee30'], '"agee30" is not a condition'],
  [['>30'], 'is not a condition'],
  [['a=1', 'or'], 'end where another one is expected'],
  [['(', 'a=1'], 'not closed'],
  [['a=1', ')'], 'not open'],
  [['a?b'], 'must not follow'],
  [['age>>'], '>> is not an operator'],
  [['age>>5'], '>> is not an operator'],
  [['age==5'], '== is not an operator'],
  [['age<>5'], '<> is not an operator'],
  [['age>'], 'a value must follow >'],
  [['name^='], 'a value must follow ^='],
])('%j is refused with what to write', (args, message) => {
  expect(() => parseConditions(args)).toThrow(UsageError);
  expect(() => parseConditions(args)).toThrow(message);
});
