import { join } from 'node:path';
import { seededRandom } from '@millrace/kit/random';
import { expect, test } from 'vitest';
import { problemsOf } from '../../test/consistency.test-support.js';
import { useScratch } from '../../test/scratch.test-support.js';
import type { Database } from '../api/database.js';
import { prefixed, prefixKey } from '../format/keys.js';
import { decodeDirectory, directoryKey, maxPageBytes } from '../format/search-pages.js';
import { restore } from '../maintain/backup/restore.js';

const scratch = useScratch();
const seed = Number(process.env['MILLRACE_SEED'] ?? Date.now() % 1_000_000);
const options = { collections: { docs: { indexes: [{ search: ['text'] }] } } };

/** Frequent and rare words. */
function textOf(random: ReturnType<typeof seededRandom>): string {
  const word = () => `w${Math.floor(2_000 * random.next() ** 3)}`;
  return Array.from({ length: 40 }, word).join(' ');
}

async function fill(db: Database, model: Map<string, string>, rounds: number, size: number) {
  const random = seededRandom(seed + model.size);
  const docs = db.collection<{ text: string }>('docs');
  for (let round = 0; round < rounds; round++) {
    const writes = Array.from({ length: size }, () => {
      const key = `k${random.integer(0, 3 * rounds * size)}`;
      const text = textOf(random);
      model.set(key, text);
      return { upsert: { key, data: { text } } };
    });
    await docs.bulkWrite(writes);
  }
}

async function expectFound(db: Database, model: Map<string, string>, search: string) {
  const wanted = [...model].filter(([, text]) =>
    search.split(' ').every((word) => text.split(' ').includes(word)),
  );
  const found: string[] = [];
  for await (const { key } of db.collection('docs').stream({ search, limit: 1_000 })) {
    found.push(key);
  }
  expect(found.sort()).toEqual(wanted.map(([key]) => key).sort());
}

const directoryOf = (db: Database) => {
  const [index] = db.core.catalog.indexes();
  return decodeDirectory(db.core.store.get('index', prefixed(index!.id, directoryKey)));
};

test(`search segments: are merged in the background, also across a close (seed ${seed})`, async () => {
  let db = await scratch.open(options);
  const model = new Map<string, string>();
  await fill(db, model, 10, 150);
  // A merge that was under way is done again.
  db = await scratch.reopen(db, options);
  await fill(db, model, 10, 150);
  await db.core.searchMerges.idle();
  const { segments, unused, records } = directoryOf(db);
  expect(records).toBe(model.size);
  expect(unused).toEqual([]);
  expect(segments.length).toBeLessThan(16);
  expect(segments.some((segment) => segment.records > 1_000)).toBe(true);
  for (const { value } of db.core.store.range('index', {})) {
    expect(value.length).toBeLessThanOrEqual(maxPageBytes);
  }
  for (const search of ['w1 w7', 'w7', 'w500 w3', 'w1999']) await expectFound(db, model, search);
  expect((await db.verify()).problems).toEqual([]);
  expect(problemsOf(db.core)).toEqual([]);
  // What all records lost is removed with them.
  await db.collection('docs').deleteMany({});
  await db.core.searchMerges.idle();
  expect(directoryOf(db)).toMatchObject({ records: 0, words: 0, segments: [], unused: [] });
});

test(`search segments: writes one by one are merged in memory, and found as from pages (seed ${seed})`, async () => {
  let db = await scratch.open(options);
  const model = new Map<string, string>();
  const docs = () => db.collection<{ text: string }>('docs');
  for (let round = 0; round < 4; round++) {
    await fill(db, model, 90, 1);
    for (const key of [...model.keys()].slice(-5)) {
      model.delete(key);
      await docs().deleteByKey(key);
    }
    for (const search of ['w1 w7', 'w0', 'w500 w3']) await expectFound(db, model, search);
    await db.core.searchMerges.idle();
    const { records, segments, unused } = directoryOf(db);
    expect([records, unused]).toEqual([model.size, []]);
    expect(segments.length).toBeLessThan(20);
    expect((await db.verify()).problems).toEqual([]);
    // The segments of an earlier process, or those after a fold, are read from their pages.
    if (round === 1) db = await scratch.reopen(db, options);
    if (round === 2) await db.compact();
  }
  expect(problemsOf(db.core)).toEqual([]);
});

test('search segments: an index of the first layout is rebuilt when the database opens', async () => {
  const db = await scratch.open(options);
  const model = new Map<string, string>();
  await fill(db, model, 1, 50);
  const { core } = db;
  const [index] = core.catalog.indexes();
  await core.writer.submit(() => {
    const { id } = index!;
    const range = { start: prefixKey(id), end: prefixKey(id + 1) };
    for (const { key } of Array.from(core.writer.range('index', range))) {
      core.writer.remove('index', key);
    }
    const entry = Buffer.from('\x40w0\0\0\x01\0\x280123456789abcdef', 'latin1');
    core.writer.put('index', prefixed(id, entry), Buffer.alloc(0));
  });
  const again = await scratch.reopen(db, options);
  await again.indexesBuilt();
  await expectFound(again, model, 'w0');
  expect(again.core.catalog.indexes()[0]!.id).toBeGreaterThan(index!.id);
  expect((await again.verify()).problems).toEqual([]);
});

test('search segments: an update that leaves the text as it is writes nothing to them', async () => {
  const where = { shown: true };
  const indexes = [{ search: ['text'] }, { search: ['title'], where }];
  const db = await scratch.open({ collections: { docs: { indexes } } });
  const docs = db.collection('docs');
  const record = { text: 'durable queue', title: 'one word', shown: true, n: 0 };
  await docs.insertWithKey('k', record);
  const numbers = () =>
    db.core.catalog.indexes().map(({ id }) => {
      const row = db.core.store.get('index', prefixed(id, directoryKey));
      return decodeDirectory(row).nextNumber;
    });
  const hits = async () => [
    (await docs.find({ search: { text: 'queue', fields: ['text'] } })).records.length,
    (await docs.find({ search: { text: 'word', fields: ['title'] } })).records.length,
  ];
  expect([numbers(), await hits()]).toEqual([
    [1, 1],
    [1, 1],
  ]);
  await docs.update({ key: 'k' }, { $inc: { n: 1 } });
  expect(numbers()).toEqual([1, 1]);
  await docs.update({ key: 'k' }, { $set: { shown: false } });
  expect([numbers(), await hits()]).toEqual([
    [1, 1],
    [1, 0],
  ]);
  await docs.update({ key: 'k' }, { $set: { shown: true, text: '' } });
  expect([numbers(), await hits()]).toEqual([
    [1, 2],
    [0, 1],
  ]);
  expect((await db.verify()).problems).toEqual([]);
});

test('search segments: a damaged index is found by verify', async () => {
  const db = await scratch.open(options);
  await fill(db, new Map(), 1, 20);
  const { core } = db;
  const rows = Array.from(core.store.range('index', {}));
  for (const [at, problem] of [
    [rows.length - 1, 'its words are not those of the records'],
    [1, 'an entry is missing'],
  ] as const) {
    const { key, value } = rows[at]!;
    await core.writer.submit(() => core.writer.remove('index', key));
    const { problems } = await db.verify();
    expect(problems.map(({ detail }) => detail)).toContain(problem);
    await core.writer.submit(() => core.writer.put('index', key, value));
  }
  expect((await db.verify()).ok).toBe(true);
});

test('search segments: a restored database has the same hits, of words and of vectors', async () => {
  const indexes = [{ search: ['text'] }, { vector: 'v', dims: 2 }];
  const db = await scratch.open({ collections: { docs: { indexes } } });
  const docs = db.collection('docs');
  for (let i = 0; i < 20; i++) {
    await docs.insertWithKey(`k${i}`, { text: `word w${i % 3}`, v: [i, 10 - i] });
  }
  await docs.deleteByKey('k3');
  const hits = async (of: Database) => {
    const near = { field: 'v', vector: [1, 1], k: 5 };
    const both = [{ search: 'w0' }, { near }, { near, search: 'word w1' }];
    const found = await Promise.all(both.map((query) => of.collection('docs').find(query)));
    return found.map(({ records }) => records.map(({ key, score }) => [key, score]));
  };
  const file = join(scratch.directory(), 'db.backup');
  await db.writeBackup(file);
  const directory = join(scratch.directory(), 'copy');
  await restore([file], directory, { clock: scratch.clock });
  const copy = await scratch.open({ collections: { docs: { indexes } } }, directory);
  await copy.indexesBuilt();
  expect(await hits(copy)).toEqual(await hits(db));
  expect((await copy.verify()).problems).toEqual([]);
});
