import { describe, expect, test } from 'vitest';
import { findAll } from './find-all.test-support.js';
import { idOf, MemoryView, sourceOf, type TestRecord } from './memory-view.test-support.js';
import type { Filter } from '../value/filter.js';
import { checkFind } from './query.js';

const all: TestRecord[] = Array.from({ length: 50 }, (_, n) => ({
  id: idOf(n),
  data: { city: `city ${n % 5}`, age: n, tags: [n] },
}));
const indexes = [{ fields: ['city', 'age'] }, { fields: ['age'] }];

/** The count by a view that has no records, only entries. */
function countByIndex(filter: Filter, view = new MemoryView(all, indexes)) {
  view.recordAt = () => {
    throw new Error('a record was read');
  };
  return findAll(sourceOf(view), checkFind({ filter, countOnly: true }));
}

describe('count: reads no record where an index says everything', () => {
  test.each<[string, Filter, number]>([
    ['a field', { field: 'city', op: 'eq', value: 'city 3' }, 10],
    ['a list', { field: 'city', op: 'in', value: ['city 3', 'city 4', 'none'] }, 20],
    ['a range', { field: 'age', op: 'between', value: [10, 19] }, 10],
    ['an open range', { field: 'age', op: 'gt', value: 40 }, 9],
    [
      'a field and a range',
      {
        and: [
          { field: 'age', op: 'lt', value: 25 },
          { field: 'city', op: 'eq', value: 'city 0' },
        ],
      },
      5,
    ],
  ])('%s', async (_name, filter, expected) => {
    expect((await countByIndex(filter)).count).toBe(expected);
  });
});

describe('count: reads the records where an index does not', () => {
  test.each<[string, Filter]>([
    ['a field that the index lacks', { and: [{ field: 'age', op: 'gt', value: 5 }, other()] }],
    ['null, which a missing field is close to', { field: 'age', op: 'eq', value: null }],
    [
      'or',
      {
        or: [
          { field: 'age', op: 'eq', value: 1 },
          { field: 'age', op: 'eq', value: 2 },
        ],
      },
    ],
  ])('%s', async (_name, filter) => {
    const view = new MemoryView(all, indexes);
    const { records } = await findAll(sourceOf(view), checkFind({ filter }));
    const { count } = await findAll(sourceOf(view), checkFind({ filter, countOnly: true }));
    expect(count).toBe(records.length);
  });

  test('an index with several entries for a record', async () => {
    const view = new MemoryView(all, [{ fields: ['tags'] }]);
    const filter: Filter = { field: 'tags', op: 'gte', value: 0 };
    const { records } = await findAll(sourceOf(view), checkFind({ filter }));
    const { count } = await findAll(sourceOf(view), checkFind({ filter, countOnly: true }));
    expect(count).toBe(records.length);
  });

  function other(): Filter {
    return { field: 'tags', op: 'exists', value: true };
  }
});

test('count: leaves out records that have expired', async () => {
  const expiring = all.map((record, n) => (n < 3 ? { ...record, expiresAt: 5 } : record));
  const filter: Filter = { field: 'age', op: 'lt', value: 10 };
  expect((await countByIndex(filter, new MemoryView(expiring, indexes))).count).toBe(7);
});

test('count: reads the records when very many have expired', async () => {
  const many = Array.from({ length: 1_500 }, (_, n) => ({
    id: idOf(n),
    data: { age: n },
    expiresAt: n < 1_200 ? 5 : 0,
  }));
  const filter: Filter = { field: 'age', op: 'gte', value: 0 };
  const source = sourceOf(new MemoryView(many, indexes));
  expect((await findAll(source, checkFind({ filter, countOnly: true }))).count).toBe(300);
});
