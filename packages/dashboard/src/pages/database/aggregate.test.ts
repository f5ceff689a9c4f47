import { expect, test } from 'vitest';
import {
  aggregateBody,
  aggregateError,
  aggregateIn,
  aggregateParams,
  emptyAggregate,
  shownGroups,
  valueName,
} from './aggregate.js';

test('aggregateIn: reads what aggregateParams writes', () => {
  const draft = { groupBy: 'city', op: 'avg', field: 'age', order: 'group', limit: '5' } as const;
  const params = new URLSearchParams(aggregateParams(draft));
  expect(aggregateIn(params.toString())).toEqual(draft);
  expect(aggregateIn('op=nope&top=-1')).toEqual(emptyAggregate);
});

test('aggregateBody: groups, computes and sorts by the value', () => {
  const filter = { field: 'age', op: 'gt', value: 3 };
  const draft = { ...emptyAggregate, groupBy: 'city, name', op: 'sum', field: ' age ' } as const;
  expect(aggregateBody(draft, filter)).toEqual({
    filter,
    group_by: ['city', 'name'],
    aggregates: [{ name: valueName, op: 'sum', field: 'age' }],
    order_by: [{ field: valueName, desc: true }],
    limit: 21,
    explain: true,
  });
});

test('aggregateError: everything but a count needs a field', () => {
  expect(aggregateError(emptyAggregate)).toBe(undefined);
  expect(aggregateError({ ...emptyAggregate, op: 'max' })).toMatch(/field/);
});

test('shownGroups: bars are relative to the largest value', () => {
  const group = (key: object, value: unknown) =>
    ({ key, count: 1, values: { [valueName]: value } }) as never;
  expect(shownGroups([group({ city: 'Oslo' }, 8), group({ city: null }, -4)])).toEqual([
    {
      label: 'Oslo',
      count: 1,
      value: 8,
      percent: 100,
      rows: [{ field: 'city', op: 'eq', value: '"Oslo"' }],
    },
    { label: '(none)', count: 1, value: -4, percent: 50, rows: undefined },
  ]);
  expect(shownGroups([group({}, 'a')])[0]).toMatchObject({ label: 'All records', percent: null });
});
