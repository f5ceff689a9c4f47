import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../value/documents.js';
import type { IndexDefinition } from '../format/entries.js';
import { findAll } from './find-all.test-support.js';
import { idOf, MemoryView, sourceOf } from './memory-view.test-support.js';
import { checkFind, type FindQuery } from './query.js';
import type { PlanReport } from './source.js';

const people = Array.from({ length: 100 }, (_, n) => ({
  id: idOf(n),
  key: `p${n}`,
  data: {
    name: `name ${n % 10}`,
    age: n % 50,
    email: `p${n}@example.org`,
    ...(n % 20 === 0 ? { nick: `nick ${n}` } : {}),
  } as JsonObject,
}));

async function plan(
  query: FindQuery,
  indexes: readonly (IndexDefinition | string)[],
  records = people,
): Promise<PlanReport> {
  const definitions = indexes.map((each) =>
    typeof each === 'string' ? { fields: each.split(',') } : each,
  );
  const view = new MemoryView(records, definitions);
  return (await findAll(sourceOf(view), checkFind(query))).plan;
}
const eq = (field: string, value: string | number | null) => ({ field, op: 'eq' as const, value });
const by = (field: string, desc = false) => [{ field, desc }];

test('without an index the whole collection is read', async () => {
  expect(await plan({ filter: eq('age', 5) }, [])).toMatchObject({
    index: '',
    rowsScanned: 100,
    rowsReturned: 2,
    fullScan: true,
    sortedInMemory: false,
  });
  expect(await plan({ orderBy: by('age') }, [])).toMatchObject({
    fullScan: true,
    sortedInMemory: true,
  });
});

describe('an index narrows down', () => {
  test.each<[string, FindQuery['filter'], number]>([
    ['eq', eq('age', 5), 2],
    ['in', { field: 'age', op: 'in', value: [5, 6, 5] }, 4],
    ['gt', { field: 'age', op: 'gt', value: 47 }, 4],
    ['gte', { field: 'age', op: 'gte', value: 47 }, 6],
    ['lt', { field: 'age', op: 'lt', value: 2 }, 4],
    ['lte', { field: 'age', op: 'lte', value: 2 }, 6],
    ['between', { field: 'age', op: 'between', value: [2, 3] }, 4],
    ['exists false', { field: 'age', op: 'exists', value: false }, 0],
    [
      'two ranges',
      {
        and: [
          { field: 'age', op: 'gte', value: 10 },
          { field: 'age', op: 'lt', value: 12 },
        ],
      },
      4,
    ],
    ['contradictions', { and: [eq('age', 5), eq('age', 'x')] }, 2],
    ['a range of another type', { field: 'age', op: 'gt', value: 'x' }, 0],
  ])('%s', async (_name, filter, rowsScanned) => {
    expect(await plan({ filter }, ['age'])).toMatchObject({
      index: 'age',
      fullScan: false,
      rowsScanned,
    });
  });

  test('prefix', async () => {
    const filter = { field: 'email', op: 'prefix' as const, value: 'p1' };
    expect(await plan({ filter }, ['email'])).toMatchObject({ index: 'email', rowsScanned: 11 });
  });

  test('inside and, not inside not', async () => {
    expect(
      await plan({ filter: { and: [eq('name', 'name 1'), eq('age', 1)] } }, ['age']),
    ).toMatchObject({ index: 'age', rowsScanned: 2 });
    expect(await plan({ filter: { not: eq('age', 1) } }, ['age'])).toMatchObject({
      fullScan: true,
    });
    const unlike = { field: 'age', op: 'ne' as const, value: 1 };
    expect(await plan({ filter: unlike }, ['age'])).toMatchObject({ fullScan: true });
  });

  test('contains, by the elements of arrays', async () => {
    const tagged = people.map((each, n) => ({ ...each, data: { tags: [`t${n % 25}`, n % 4] } }));
    const text = { field: 'tags', op: 'contains' as const, value: 't3' };
    expect(await plan({ filter: text }, ['tags'], tagged)).toMatchObject({
      index: 'tags',
      rowsScanned: 4,
    });
    const number = { field: 'tags', op: 'contains' as const, value: 3 };
    expect(await plan({ filter: number }, ['tags'], tagged)).toMatchObject({ rowsScanned: 25 });
    // Where there are no arrays it could only be a part of any string.
    const part = { field: 'name', op: 'contains' as const, value: '1' };
    expect(await plan({ filter: part }, ['name'])).toMatchObject({ fullScan: true });
  });

  test('or, when all of its branches are indexed', async () => {
    const filter = { or: [eq('age', 5), eq('email', 'p7@example.org'), eq('age', 5)] };
    expect(await plan({ filter }, ['age', 'email'])).toMatchObject({
      index: 'age or email',
      fullScan: false,
      rowsScanned: 5,
      rowsReturned: 3,
    });
    expect(await plan({ filter }, ['age'])).toMatchObject({ index: '', fullScan: true });
    expect(await plan({ filter: { or: [eq('age', 5), {}] } }, ['age'])).toMatchObject({
      fullScan: true,
    });
  });
});

describe('the leading part of a compound index', () => {
  const compound = ['name,age,email'];
  test.each<[string, FindQuery['filter'], number]>([
    ['one field', eq('name', 'name 1'), 10],
    ['two fields', { and: [eq('age', 11), eq('name', 'name 1')] }, 2],
    ['a range behind', { and: [eq('name', 'name 1'), { field: 'age', op: 'gt', value: 30 }] }, 4],
    [
      'a list before',
      { and: [{ field: 'name', op: 'in', value: ['name 1', 'name 2'] }, eq('age', 1)] },
      2,
    ],
  ])('serves %s', async (_name, filter, rowsScanned) => {
    expect(await plan({ filter }, compound)).toMatchObject({
      index: 'name,age,email',
      rowsScanned,
    });
  });

  test('but not a later part alone', async () => {
    expect(await plan({ filter: eq('age', 5) }, compound)).toMatchObject({ fullScan: true });
  });
});

describe('the choice', () => {
  const filter = {
    and: [
      eq('email', 'p5@example.org'),
      eq('name', 'name 5'),
      { field: 'age', op: 'gt' as const, value: 1 },
    ],
  };
  test.each<[string, (IndexDefinition | string)[]]>([
    ['email', ['name', { fields: ['email'], unique: true }, 'name,age']],
    ['name,email', ['age', 'name', 'name,email']],
    ['name,age', ['age', 'name', 'name,age']],
    ['name', ['age', 'name']],
    ['age', ['age', 'other']],
  ])('falls on %s', async (index, indexes) => {
    expect(await plan({ filter }, indexes)).toMatchObject({ index });
  });

  test('falls on ids and keys before all', async () => {
    const indexes = [{ fields: ['email'], unique: true }];
    const byId = {
      and: [filter, { field: '$id', op: 'in' as const, value: [idOf(5), 'x', idOf(6)] }],
    };
    expect(await plan({ filter: byId }, indexes)).toMatchObject({
      index: '$id',
      rowsScanned: 3,
      rowsReturned: 1,
    });
    expect(await plan({ filter: eq('$key', 'p3') }, indexes)).toMatchObject({
      index: '$key',
      rowsScanned: 1,
      rowsReturned: 1,
      fullScan: false,
    });
    const longKey = { filter: eq('$key', 'x'.repeat(5000)) };
    expect(await plan(longKey, indexes)).toMatchObject({ rowsReturned: 0 });
  });

  test('falls on the one that also gives the order, among equals', async () => {
    const query = { filter: eq('name', 'name 1'), orderBy: by('age') };
    expect(await plan(query, ['name,email', 'name,age'])).toMatchObject({
      index: 'name,age',
      sortedInMemory: false,
    });
  });
});

describe('a range of ids', () => {
  test.each<[FindQuery, number]>([
    [{ filter: { field: '$id', op: 'between', value: [idOf(10), idOf(19)] } }, 10],
    [{ filter: { field: '$id', op: 'gte', value: idOf(95) } }, 5],
    [{ filter: { field: '$id', op: 'lt', value: idOf(5) } }, 6],
    [{ filter: { field: '$id', op: 'gte', value: idOf(95) }, orderBy: by('$id', true) }, 5],
    [{ filter: { field: '$id', op: 'lte', value: idOf(4) }, orderBy: by('$id', true) }, 5],
  ])('%j', async (query, rowsScanned) => {
    expect(await plan(query, [])).toMatchObject({ index: '$id', fullScan: false, rowsScanned });
  });
});

describe('an index gives the order', () => {
  test.each<[string, FindQuery, string[]]>([
    ['alone', { orderBy: by('age') }, ['age']],
    ['backwards', { orderBy: by('age', true) }, ['age']],
    ['by several fields', { orderBy: [...by('name'), ...by('age')] }, ['name,age']],
    ['by several backwards', { orderBy: [...by('name', true), ...by('age', true)] }, ['name,age']],
    ['behind an eq', { filter: eq('name', 'name 1'), orderBy: by('age') }, ['name,age']],
    [
      'with the eq in it',
      { filter: eq('name', 'name 1'), orderBy: [...by('age'), ...by('name')] },
      ['name,age'],
    ],
    ['of a range', { filter: { field: 'age', op: 'gt', value: 5 }, orderBy: by('age') }, ['age']],
    ['by id behind eqs', { filter: eq('name', 'name 1') }, ['name']],
  ])('%s', async (_name, query, indexes) => {
    expect(await plan(query, indexes)).toMatchObject({ index: indexes[0], sortedInMemory: false });
  });

  test('and stops at the limit', async () => {
    const { rowsScanned } = await plan({ orderBy: by('age'), limit: 5 }, ['age']);
    expect(rowsScanned).toBeLessThan(40);
  });

  test.each<[string, FindQuery, (IndexDefinition | string)[]]>([
    ['mixed directions', { orderBy: [...by('name'), ...by('age', true)] }, ['name,age']],
    ['a field more', { orderBy: by('name') }, ['name,age']],
    ['a sparse index', { orderBy: by('nick') }, [{ fields: ['nick'], sparse: true }]],
  ])('not for %s', async (_name, query, indexes) => {
    expect(await plan(query, indexes)).toMatchObject({ sortedInMemory: true, fullScan: true });
  });

  test('not when an array or a long text is in it', async () => {
    const odd = (value: JsonObject) => [...people, { id: idOf(200), key: '', data: value }];
    for (const records of [odd({ name: ['x'] }), odd({ name: 'x'.repeat(5000) })]) {
      expect(await plan({ orderBy: by('name') }, ['name'], records)).toMatchObject({
        sortedInMemory: true,
        fullScan: true,
      });
    }
  });
});

test('a sparse index serves whatever asks for its fields, and only that', async () => {
  const sparse = [{ fields: ['nick'], sparse: true }];
  const present = { field: 'nick', op: 'exists' as const, value: true };
  expect(await plan({ filter: present }, sparse)).toMatchObject({ index: 'nick', rowsScanned: 5 });
  expect(await plan({ filter: present, orderBy: by('nick', true) }, sparse)).toMatchObject({
    index: 'nick',
    sortedInMemory: false,
  });
  const missing = { field: 'nick', op: 'exists' as const, value: false };
  expect(await plan({ filter: missing }, sparse)).toMatchObject({ fullScan: true });
  expect(await plan({ filter: missing }, ['nick'])).toMatchObject({
    index: 'nick',
    rowsScanned: 95,
  });
});

test('a full scan can be forbidden', async () => {
  const forbidden = { allowFullScan: false };
  await expect(plan({ ...forbidden, filter: eq('name', 'x') }, ['age'])).rejects.toThrow(
    'INDEX_REQUIRED: No index serves this query',
  );
  await expect(plan(forbidden, [])).rejects.toThrow('INDEX_REQUIRED');
  expect(await plan({ ...forbidden, filter: eq('age', 5) }, ['age'])).toMatchObject({
    rowsReturned: 2,
  });
  expect(await plan({ ...forbidden, orderBy: by('age') }, ['age'])).toMatchObject({ index: 'age' });
});
