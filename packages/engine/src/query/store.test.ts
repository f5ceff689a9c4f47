import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Database } from '../api/database.js';
import type { JsonObject } from '../value/documents.js';
import type { TestRecord } from './memory-view.test-support.js';
import { modelFind } from './model.test-support.js';
import { aggregate } from './aggregate.js';
import { checkAggregate } from './aggregate-query.js';
import { findAll } from './find-all.test-support.js';
import { checkFind, type FindQuery } from './query.js';
import { Slice } from '../core/slice.js';

const directory = mkdtempSync(join(tmpdir(), 'millrace-query-'));
let db: Database;
let all: TestRecord[];

const indexes = [
  { fields: ['a'] },
  { fields: ['a', 'b'] },
  { fields: ['mixed'] },
  { fields: ['tags'] },
  { fields: ['items.n'] },
  { fields: ['some'], sparse: true },
  { fields: ['email'], unique: true },
];

function dataOf(n: number): JsonObject {
  const mixed = [n, `text ${n}`, null, true, [n], { n }, 'x'.repeat(2000) + n][n % 7]!;
  return {
    a: n % 3,
    b: (n * 7) % 50,
    mixed,
    tags: [`t${n % 10}`, n % 4],
    items: [{ n: n % 9 }, { n: n % 5 }],
    email: `p${n}@example.org`,
    ...(n % 10 === 0 ? { some: n % 20 } : {}),
  };
}

beforeAll(async () => {
  db = await Database.open(directory, { collections: { things: { indexes } } });
  const things = db.collection<JsonObject>('things');
  const stored = await Promise.all(
    Array.from({ length: 600 }, (_, n) => things.insertWithKey(`k${n}`, dataOf(n))),
  );
  all = stored.map(({ id, key, data, rev }) => ({ id, key, data, rev }));
  await db.indexesBuilt();
});
afterAll(async () => {
  await db.close();
  rmSync(directory, { recursive: true, force: true });
});

async function page(query: FindQuery) {
  const ids: string[] = [];
  for await (const { records, end } of db.queries.find('things', query)) {
    ids.push(...records.map(({ image }) => image.id));
    if (end) return { ids, ...end };
  }
  throw new Error('no end');
}

const by = (field: string, desc = false) => ({ field, desc });

test.each<[string, FindQuery]>([
  ['', {}],
  ['', { orderBy: [by('$id', true)] }],
  ['', { orderBy: [by('b')], filter: { field: 'b', op: 'lt', value: 7 } }],
  ['a', { orderBy: [by('a')] }],
  ['a', { orderBy: [by('a', true)] }],
  ['a', { orderBy: [by('a', true), by('$id', true)] }],
  ['a,b', { orderBy: [by('a', true), by('b', true)] }],
  ['a,b', { filter: { field: 'a', op: 'eq', value: 1 }, orderBy: [by('b', true)] }],
  ['a', { filter: { field: 'a', op: 'in', value: [2, 0] } }],
  ['', { orderBy: [by('mixed', true)] }],
  ['mixed', { filter: { field: 'mixed', op: 'gt', value: 'text 5' } }],
  ['mixed', { filter: { field: 'mixed', op: 'prefix', value: 'x'.repeat(1900) } }],
  ['mixed', { filter: { field: 'mixed', op: 'eq', value: { n: 12 } } }],
  ['tags', { filter: { field: 'tags', op: 'contains', value: 't3' }, orderBy: [by('b')] }],
  ['items.n', { filter: { field: 'items.n', op: 'eq', value: 7 } }],
  ['some', { filter: { field: 'some', op: 'exists', value: true }, orderBy: [by('some', true)] }],
  ['email', { filter: { field: 'email', op: 'eq', value: 'p17@example.org' } }],
  ['$key', { filter: { field: '$key', op: 'in', value: ['k7', 'k1', 'none'] } }],
  [
    'tags or email',
    {
      filter: {
        or: [
          { field: 'tags', op: 'contains', value: 3 },
          { field: 'email', op: 'prefix', value: 'p1' },
        ],
      },
    },
  ],
])('on the real store %s gives what reading everything would: %j', async (index, query) => {
  const expected = modelFind(all, query.filter ?? {}, query.orderBy ?? []);
  const whole = await page(query);
  expect(whole.ids).toEqual(expected);
  expect(whole.plan.index).toBe(index);
  expect((await page({ ...query, countOnly: true })).count).toBe(expected.length);
  for (const limit of [1, 37, 250]) {
    const found: string[] = [];
    let cursor = '';
    do {
      const { ids, nextCursor } = await page({ ...query, limit, cursor });
      found.push(...ids);
      cursor = nextCursor;
    } while (cursor && found.length < 300);
    expect(found).toEqual(expected.slice(0, found.length));
    if (!cursor) expect(found).toHaveLength(expected.length);
  }
});

test('a record with a lookup keeps its own id and key when it is read from the file', async () => {
  const [people, orders] = [
    db.collection<JsonObject>('people'),
    db.collection<JsonObject>('orders'),
  ];
  await db.catalog.createIndex('people', { fields: ['code'] });
  await db.indexesBuilt();
  for (const code of ['a', 'b']) await people.insertWithKey(`person-${code}`, { code });
  const made = [];
  for (const who of ['a', 'b', 'a']) made.push(await orders.insert({ who }));
  await db.core.store.fold();
  const lookup = { from: 'people', local: 'who', foreign: 'code', as: 'buyers' };
  const page = (query: object) => orders.find({ lookup, ...query });
  const { records } = await page({});
  const marks = records.map(({ id, key, rev, seq }) => ({ id, key, rev, seq }));
  expect(marks).toEqual(made.map(({ id, key, rev, seq }) => ({ id, key, rev, seq })));
  const first = await page({ limit: 1 });
  const second = await page({ limit: 1, cursor: first.nextCursor });
  expect(second.records.map(({ id }) => id)).toEqual([made[1]!.id]);
});

test('a scan with a lookup continues after each pause where it was', async () => {
  const [people, orders] = [
    db.collection<JsonObject>('buyers'),
    db.collection<JsonObject>('sales'),
  ];
  // Without an index the other collection is read before the scan.
  await db.catalog.createIndex('buyers', { fields: ['code'] });
  await db.indexesBuilt();
  await people.insert({ code: 'a' });
  for (let n = 0; n < 200; n++) await orders.insert({ n, who: 'a' });
  await db.core.store.fold();
  const { catalog, sortSpace } = db.core;
  const view = db.core.snapshot();
  // Every 64 records a pause is due.
  const slice = new Slice({ monotonic: () => 0, budgetMs: 0 });
  const foreign = (name: string) => catalog.find(name);
  const source = { view, collection: catalog.find('sales')!, now: 0, slice, sortSpace, foreign };
  const lookup = [{ from: 'buyers', local: 'who', foreign: 'code', as: 'buyers' }];
  const found = await findAll(source, checkFind({ lookup, limit: 1_000 }));
  const numbers = Array.from({ length: 200 }, (_, n) => n);
  expect(found.records.map(({ image }) => image.data['n'])).toEqual(numbers);
  const query = { lookup, aggregates: [{ name: 'sum', op: 'sum', field: 'n' }] };
  const { groups } = await aggregate(source, checkAggregate(query));
  expect(groups).toMatchObject([{ count: 200, values: { sum: 19_900 } }]);
  view.done();
});
