import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { open, type Database } from '../index.js';

interface Person {
  name: string;
  age: number;
  city?: string;
}

let folder: string;
let db: Database;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-queries-'));
  db = await open(folder, { collections: { people: { indexes: [{ fields: ['age'] }] } } });
});
afterEach(async () => {
  await db.close();
  rmSync(folder, { recursive: true, force: true });
});

const people = () => db.collection<Person>('people');

async function insertMany(count: number): Promise<void> {
  const cities = ['Bern', 'Oslo', 'Rome'];
  const rows = Array.from({ length: count }, (_, i) =>
    people().insert({ name: `p${i}`, age: i % 90, city: cities[i % 3]! }),
  );
  await Promise.all(rows);
}

test('an indexed find, a full scan and a count agree on the real store', async () => {
  await insertMany(2_000);
  const indexed = await people().find({
    filter: { field: 'age', op: 'gte', value: 80 },
    orderBy: [{ field: 'age' }],
    limit: 10_000,
    explain: true,
  });
  expect(indexed.plan).toMatchObject({ index: 'age', fullScan: false, sortedInMemory: false });
  const scanned = await people().find({
    filter: { not: { field: 'age', op: 'lt', value: 80 } },
    limit: 10_000,
    explain: true,
  });
  expect(scanned.plan).toMatchObject({ index: '', fullScan: true, sortedInMemory: false });
  // By id as it came; a stable sort by age keeps that as the tie-break.
  const sorted = scanned.records.toSorted((a, b) => a.data.age - b.data.age);
  expect(indexed.records.map(({ id }) => id)).toEqual(sorted.map(({ id }) => id));
  expect(await people().count({ field: 'age', op: 'gte', value: 80 })).toBe(indexed.records.length);
});

test('pages of a cursor are the whole, and a stream is all of it from one snapshot', async () => {
  await insertMany(450);
  const paged: string[] = [];
  let cursor = '';
  do {
    const page = await people().find({ orderBy: [{ field: 'age', desc: true }], cursor });
    paged.push(...page.records.map(({ data }) => data.name));
    cursor = page.nextCursor;
  } while (cursor !== '');
  const streamed: string[] = [];
  for await (const { data } of people().stream({ orderBy: [{ field: 'age', desc: true }] })) {
    if (streamed.length === 10) await people().insert({ name: 'late', age: 0 });
    streamed.push(data.name);
  }
  expect(paged).toHaveLength(450);
  expect(streamed).toEqual(paged);
});

test('a collection that nobody wrote to is empty, not unknown', async () => {
  expect(await db.collection('nobody').find()).toMatchObject({ records: [], nextCursor: '' });
  expect(await db.collection('nobody').count()).toBe(0);
});

test('a transaction finds its own writes, and a new match elsewhere is a conflict', async () => {
  await insertMany(30);
  const tx = db.transactions.begin();
  await people().insert({ name: 'own', age: 200 }, { transaction: tx });
  const old = { filter: { field: 'age', op: 'gt', value: 100 } as const };
  const seen = await people().find(old, { transaction: tx });
  expect(seen.records.map(({ data }) => data.name)).toEqual(['own']);
  expect((await people().find(old)).records).toEqual([]);
  await people().insert({ name: 'other', age: 150 });
  await expect(db.transactions.commit(tx.id)).rejects.toMatchObject({ code: 'TX_CONFLICT' });
  expect((await people().find(old)).records.map(({ data }) => data.name)).toEqual(['other']);
});

test('an aggregate groups and computes', async () => {
  await insertMany(300);
  const { groups } = await people().aggregate({
    groupBy: ['city'],
    aggregates: [
      { name: 'n', op: 'count' },
      { name: 'oldest', op: 'max', field: 'age' },
    ],
    orderBy: [{ field: 'city' }],
  });
  expect(groups.map(({ key, values }) => [key['city'], values['n']])).toEqual([
    ['Bern', 100],
    ['Oslo', 100],
    ['Rome', 100],
  ]);
});
