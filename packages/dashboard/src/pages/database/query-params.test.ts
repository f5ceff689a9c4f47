import { expect, test } from 'vitest';
import { withParams } from '../../parts/location.js';
import { draftIn, paramsOf } from './query-params.js';
import { emptyDraft, type Draft } from './query.js';

test('draftIn: reads what paramsOf wrote', () => {
  const draft: Draft = {
    search: 'durable "exact phrase"',
    rows: [
      { id: 0, field: 'age', op: 'gt', value: '30' },
      { id: 1, field: 'full name', op: 'eq', value: '"Ada & Co" ' },
      { id: 2, field: 'tags', op: 'exists', value: '' },
    ],
    match: 'any',
    sortBy: 'age',
    descending: true,
    limit: '50',
  };
  expect(draftIn(withParams('', paramsOf(draft)))).toEqual(draft);
});

test('paramsOf: the empty query leaves the address empty', () => {
  expect(withParams('', paramsOf(emptyDraft))).toBe('');
  expect(draftIn('')).toEqual(emptyDraft);
});

test('draftIn: ignores what is no query', () => {
  const text = 'where=age&where=age+nope+1&where=%25zz+eq+1&limit=-3';
  expect(draftIn(text)).toEqual(emptyDraft);
});
