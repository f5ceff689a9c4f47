import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Json, JsonObject } from '../value/documents.js';
import { aggregate } from './aggregate.js';
import { checkAggregate, type AggregateQuery } from './aggregate-query.js';
import { document, filter, indexes, records } from './arbitraries.test-support.js';
import { idOf, imageOf, MemoryView, sourceOf } from './memory-view.test-support.js';
import { modelCompare, modelMatches } from './model.test-support.js';
import { SortSpace } from '../storage/sort-space.js';

const rows = (...documents: JsonObject[]) => documents.map((data, n) => ({ id: idOf(n), data }));

async function groups(view: MemoryView, query: AggregateQuery, more = {}) {
  return (await aggregate(sourceOf(view, more), checkAggregate(query))).groups;
}
async function values(documents: JsonObject[], query: AggregateQuery) {
  const [group] = await groups(new MemoryView(rows(...documents)), query);
  return group!.values;
}

describe('accumulators', () => {
  const documents: JsonObject[] = [
    { n: 5, t: 'b' },
    { n: '7', t: 'a' },
    { n: 1 },
    { n: null, t: 'b' },
    {},
  ];
  test.each<[string, Json]>([
    ['count', 4],
    ['sum', 6],
    ['avg', 3],
    ['min', null],
    ['max', '7'],
    ['count_distinct', 4],
    ['first', 5],
    ['last', null],
  ])('%s', async (op, expected) => {
    const aggregates = [{ name: 'x', op: op as 'count', field: 'n' }];
    expect(await values(documents, { aggregates })).toEqual({ x: expected });
  });

  test('count without a field counts records', async () => {
    const aggregates = [{ name: 'x', op: 'count' as const }];
    expect(await values(documents, { aggregates })).toEqual({ x: 5 });
  });

  test('first and last go by id among the records that have the field', async () => {
    const aggregates = [
      { name: 'first', op: 'first' as const, field: 't' },
      { name: 'last', op: 'last' as const, field: 't' },
    ];
    expect(await values([{}, ...documents], { aggregates })).toEqual({ first: 'b', last: 'b' });
    expect(await values([{ t: 1 }, { t: 2 }, {}], { aggregates })).toEqual({ first: 1, last: 2 });
  });

  test('take every value that a path through an array reaches', async () => {
    const lists: JsonObject[] = [
      { list: [{ v: 1 }, { v: 2 }, {}] },
      { list: [] },
      { list: [{ v: 2 }] },
    ];
    const ops = ['count', 'sum', 'avg', 'min', 'max', 'count_distinct', 'first'] as const;
    const aggregates = ops.map((op) => ({ name: op, op, field: 'list.v' }));
    expect(await values(lists, { aggregates })).toEqual({
      count: 2,
      sum: 5,
      avg: 5 / 3,
      min: 1,
      max: 2,
      count_distinct: 2,
      first: [1, 2],
    });
  });

  test('tell values apart by type, and nested ones by what they hold', async () => {
    const all = [1, '1', true, null, [1], { a: 1, b: 2 }, { b: 2, a: 1 }, -0, 0].map((n) => ({
      n,
    }));
    const aggregates = [{ name: 'x', op: 'count_distinct' as const, field: 'n' }];
    expect(await values(all, { aggregates })).toEqual({ x: 7 });
  });

  test('show times as RFC 3339', async () => {
    const ops = ['min', 'max', 'first'] as const;
    const aggregates = ops.map((op) => ({ name: op, op, field: '$created_at' }));
    const time = '1970-01-01T00:00:01.000Z';
    expect(await values([{}], { aggregates })).toEqual({ min: time, max: time, first: time });
  });

  test('that overflow are null, for JSON has no infinity', async () => {
    const aggregates = [
      { name: 'sum', op: 'sum' as const, field: 'n' },
      { name: 'avg', op: 'avg' as const, field: 'n' },
    ];
    expect(await values([{ n: 1e308 }, { n: 1e308 }], { aggregates })).toEqual({
      sum: null,
      avg: null,
    });
  });
});

test('without groups over nothing there is one group: counts and sum 0, the others null', async () => {
  const ops = ['count', 'sum', 'avg', 'min', 'max', 'count_distinct', 'first', 'last'] as const;
  const aggregates = ops.map((op) => ({ name: op, op, field: 'n' }));
  expect(await groups(new MemoryView([]), { aggregates })).toEqual([
    {
      key: {},
      count: 0,
      values: {
        count: 0,
        sum: 0,
        avg: null,
        min: null,
        max: null,
        count_distinct: 0,
        first: null,
        last: null,
      },
    },
  ]);
  expect(await groups(new MemoryView([]), { aggregates, groupBy: ['n'] })).toEqual([]);
});

describe('groups', () => {
  const sales = new MemoryView(
    rows(
      { city: 'Rome', kind: 'a', n: 1 },
      { city: 'Paris', kind: 'a', n: 2 },
      { city: 'Rome', kind: 'b', n: 3 },
      { kind: 'a', n: 4 },
      { city: null, n: 5 },
    ),
    [{ fields: ['kind'] }],
  );
  const sum = [{ name: 'total', op: 'sum' as const, field: 'n' }];

  test('come by group, null also for records without the field', async () => {
    expect(await groups(sales, { groupBy: ['city'], aggregates: sum })).toEqual([
      { key: { city: null }, count: 2, values: { total: 9 } },
      { key: { city: 'Paris' }, count: 1, values: { total: 2 } },
      { key: { city: 'Rome' }, count: 2, values: { total: 4 } },
    ]);
  });

  test('go by several fields, nested ones too', async () => {
    const found = await groups(sales, { groupBy: ['city', 'kind'] });
    expect(found.map(({ key }) => key)).toEqual([
      { city: null, kind: null },
      { city: null, kind: 'a' },
      { city: 'Paris', kind: 'a' },
      { city: 'Rome', kind: 'a' },
      { city: 'Rome', kind: 'b' },
    ]);
    const nested = new MemoryView(rows({ a: { b: [1] } }, { a: { b: [1] } }, { a: { b: 1 } }));
    expect(await groups(nested, { groupBy: ['a.b'] })).toEqual([
      { key: { 'a.b': 1 }, count: 1, values: {} },
      { key: { 'a.b': [1] }, count: 2, values: {} },
    ]);
  });

  test('are kept apart by type', async () => {
    const view = new MemoryView(rows({ a: 1 }, { a: '1' }, { a: [1] }, { a: '[1]' }, { a: true }));
    expect(await groups(view, { groupBy: ['a'] })).toHaveLength(5);
    expect(await groups(view, { groupBy: ['a', 'b'] })).toHaveLength(5);
  });

  test('are of the records that match', async () => {
    const query = { filter: { field: 'kind', op: 'eq' as const, value: 'a' }, aggregates: sum };
    const result = await aggregate(sourceOf(sales), checkAggregate(query));
    expect(result.groups).toEqual([{ key: {}, count: 3, values: { total: 7 } }]);
    expect(result.plan).toMatchObject({ index: 'kind', rowsScanned: 3, rowsReturned: 1 });
  });

  test('are chosen by having, sorted by orderBy and cut at the limit', async () => {
    const query: AggregateQuery = { groupBy: ['city'], aggregates: sum };
    const cities = async (more: AggregateQuery) =>
      (await groups(sales, { ...query, ...more })).map(({ key }) => key['city']);
    expect(await cities({ having: { field: 'total', op: 'gt', value: 3 } })).toEqual([
      null,
      'Rome',
    ]);
    expect(await cities({ having: { field: 'city', op: 'ne', value: null } })).toEqual([
      'Paris',
      'Rome',
    ]);
    expect(await cities({ having: { field: 'count', op: 'eq', value: 1 } })).toEqual(['Paris']);
    expect(await cities({ orderBy: [{ field: 'total', desc: true }] })).toEqual([
      null,
      'Rome',
      'Paris',
    ]);
    expect(await cities({ orderBy: [{ field: 'count', desc: true }] })).toEqual([
      null,
      'Rome',
      'Paris',
    ]);
    expect(await cities({ orderBy: [{ field: 'city', desc: true }], limit: 1 })).toEqual(['Rome']);
  });

  test('are at most 100,000', async () => {
    const view = new MemoryView([]);
    const images = Array.from({ length: 100_001 }, (_, n) => imageOf({ id: idOf(n), data: { n } }));
    const overlay = new Map(images.map((image) => [image.id, image]));
    await expect(groups(view, { groupBy: ['n'] }, { overlay })).rejects.toMatchObject({
      code: 'GROUP_LIMIT',
      extra: { members: { metadata: { limit: '100000' } } },
    });
    overlay.delete(idOf(0));
    expect(await groups(view, { groupBy: ['n'] }, { overlay })).toHaveLength(100_000);
  });
});

test('an aggregate is what it is over the records one by one, with indexes and own writes', async () => {
  const writes = fc.array(fc.tuple(fc.integer({ min: 0, max: 14 }), fc.option(document)), {
    maxLength: 5,
  });
  await fc.assert(
    fc.asyncProperty(records, indexes, filter, writes, async (all, definitions, where, changes) => {
      const applied = new Map(all.map((record) => [record.id, record]));
      const overlay = new Map();
      for (const [n, data] of changes) {
        const record = data && { id: idOf(n), data, rev: 1, key: '' };
        overlay.set(idOf(n), record && imageOf(record));
        if (record) applied.set(idOf(n), record);
        else applied.delete(idOf(n));
      }
      const matching = [...applied.values()]
        .filter((record) => modelMatches(record, where))
        .sort((a, b) => (a.id < b.id ? -1 : 1));
      const having = (each: { data: JsonObject }) => Object.hasOwn(each.data, 'a');
      const present = matching.filter(having).map(({ data }) => data['a']!);
      const sorted = present.toSorted(modelCompare);
      const [group] = await groups(
        new MemoryView(all, definitions),
        {
          filter: where,
          aggregates: (['count', 'min', 'max', 'first', 'last'] as const).map((op) => ({
            name: op,
            op,
            field: 'a',
          })),
        },
        { overlay },
      );
      expect(group!.count).toBe(matching.length);
      expect(group!.values['count']).toBe(present.length);
      expect(modelCompare(group!.values['min'], sorted[0] ?? null)).toBe(0);
      expect(modelCompare(group!.values['max'], sorted.at(-1) ?? null)).toBe(0);
      expect(modelCompare(group!.values['first'], present[0] ?? null)).toBe(0);
      expect(modelCompare(group!.values['last'], present.at(-1) ?? null)).toBe(0);
    }),
    { numRuns: 500 },
  );
});

describe('an aggregate of the wrong shape', () => {
  const one = (accumulator: unknown) => ({ aggregates: [accumulator] });
  test.each<[unknown, string]>([
    [one({ name: 'x', op: 'median', field: 'a' }), '"median" is unknown; it must be one of count'],
    [one({ name: 'x', op: 'sums', field: 'a' }), 'did you mean "sum"?'],
    [one({ name: 'x', field: 'a' }), 'aggregates[0].op must be one of'],
    [
      one({ name: 'x', op: 'sum' }),
      'aggregates[0].field is missing: sum needs the path of a field',
    ],
    [one({ op: 'count' }), 'aggregates[0].name must be the name of the value, not nothing'],
    [one({ name: '', op: 'count' }), 'must be the name of the value, not an empty string'],
    [one({ name: '__proto__', op: 'count' }), 'cannot be "__proto__"'],
    [one(undefined), 'aggregates[0] is missing'],
    [one({ name: 'x', op: 'sum', field: '$x' }), 'aggregates[0].field is not one of $id'],
    [{ groupBy: ['a', 'a'] }, 'name "a" twice'],
    [{ groupBy: ['a'], ...one({ name: 'a', op: 'count' }) }, 'name "a" twice'],
    [{ groupBy: 'a' }, 'groupBy must be a list'],
    [{ orderBy: [{ field: 'b' }] }, 'orderBy[0].field "b" is neither an accumulator nor a group'],
    [{ having: { field: 'b', op: 'eq', value: 1 } }, 'having.field "b" is neither'],
    [{ groupBy: ['total'], having: { field: 'totl', op: 'exists' } }, 'did you mean "total"?'],
    [{ group: [] }, 'unknown member "group"'],
  ])('is refused: %j', (query, text) => {
    expect(() => checkAggregate(query)).toThrow('BAD_REQUEST: ');
    expect(() => checkAggregate(query)).toThrow(text);
  });

  test('has its filters refused as filters', () => {
    const having = { field: 'count', op: 'is', value: 1 };
    expect(() => checkAggregate({ having })).toThrow('BAD_FILTER: having.op "is" is unknown');
  });
});

describe('memory', () => {
  const long = (n: number) => `${'x'.repeat(40_000)}${n}`;
  const documents = Array.from({ length: 60 }, (_, n) => ({
    key: long(n % 20),
    n,
    value: long(n),
  }));

  /** A sort space of 64 KiB per query, and a spy on its files. */
  function smallSpace() {
    const directory = mkdtempSync(join(tmpdir(), 'millrace-aggregate-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const space = new SortSpace(directory, 4 * 64 * 1024);
    const openFile = vi.spyOn(space, 'openFile');
    return { space, openFile };
  }

  test('groups and values beyond the memory are in a file, and the answer is the same', async () => {
    const query: AggregateQuery = {
      groupBy: ['key'],
      aggregates: [
        { name: 'first', op: 'first', field: 'value' },
        { name: 'last', op: 'last', field: 'value' },
        { name: 'min', op: 'min', field: 'value' },
        { name: 'max', op: 'max', field: 'value' },
        { name: 'distinct', op: 'count_distinct', field: 'value' },
      ],
      having: { field: 'max', op: 'gt', value: 'x' },
      orderBy: [{ field: 'last', desc: true }],
    };
    const view = new MemoryView(rows(...documents));
    const { space, openFile } = smallSpace();
    const spilled = await groups(view, query, { sortSpace: space });
    expect(openFile).toHaveBeenCalledTimes(1);
    expect(space.distinctBytes).toBe(0);
    expect(spilled).toEqual(await groups(view, query));
    expect(spilled).toHaveLength(20);
    const [first] = spilled.filter(({ key }) => key['key'] === long(7));
    expect(first).toMatchObject({ count: 3, values: { distinct: 3, last: long(47) } });
  });

  test('an answer that is too large is refused, and a limit helps', async () => {
    const large = 'y'.repeat(1_000_000);
    const view = new MemoryView(
      rows(...Array.from({ length: 70 }, (_, n) => ({ key: `${large}${n}` }))),
    );
    const query = { groupBy: ['key'], aggregates: [] };
    await expect(groups(view, query)).rejects.toThrow(/64 MiB already; set a limit/);
    expect(await groups(view, { ...query, limit: 1 })).toHaveLength(1);
  });

  test('count_distinct beyond its memory is refused', async () => {
    const { space } = smallSpace();
    space.distinctBytes = 256 * 1024 * 1024 - 1_000;
    const query = { aggregates: [{ name: 'd', op: 'count_distinct' as const, field: 'value' }] };
    const view = new MemoryView(rows(...documents));
    await expect(groups(view, query, { sortSpace: space })).rejects.toThrow(/narrow the filter/);
    expect(space.distinctBytes).toBe(256 * 1024 * 1024 - 1_000);
  });
});
