import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { useScratch } from '../../test/scratch.test-support.js';

const scratch = useScratch();

const texts = [
  { title: 'Durable queue', body: 'A durable queue keeps its tasks on disk, beside Redis.' },
  { title: 'Queues compared', body: 'Redis is fast; a queue in PostgreSQL is durable, too.' },
  { title: 'Gardening', body: 'The durable rake. Queueing for apples, exact phrase here.' },
  { title: 'Exact', body: 'phrase exact; prefixes and premises of the exact phrase.' },
  { title: 'Nothing', body: 42, tags: ['premium', 'garden tools'] },
];
const search = ['title', 'body', 'tags'];

async function library(language = 'en') {
  const indexes = [{ search, language, weights: { title: 3 } }];
  const db = await scratch.open({ collections: { docs: { indexes } } });
  const docs = db.collection('docs');
  for (const [i, data] of texts.entries()) await docs.insertWithKey(String(i), data);
  return { db, docs };
}

describe('search', () => {
  test.each<[string | object, string]>([
    ['durable queue', '012'],
    ['durable -redis', '2'],
    ['"exact phrase"', '23'],
    ['-"exact phrase" exact', ''],
    ['pre*', '34'],
    ['garden', '24'],
    ['the', ''],
    [{ text: 'redis apples', mode: 'any' }, '012'],
    [{ text: 'duralbe queeu', fuzzy: true }, '012'],
    [{ text: 'xurable', fuzzy: true }, '012'],
    [{ text: 'urable', fuzzy: true }, '012'],
    [{ text: 'duralbe' }, ''],
    [{ text: 'exact', fields: ['title'] }, '3'],
  ])('%j', async (query, keys) => {
    const { docs } = await library();
    const { records } = await docs.find({ search: query as never });
    expect(
      records
        .map(({ key }) => key)
        .sort()
        .join(''),
    ).toBe(keys);
    const scores = records.map(({ score }) => score!);
    expect(scores).toEqual(scores.toSorted((a, b) => b - a));
    expect(await count(docs, query)).toBe(keys.length);
  });

  test('ranks by weight, highlights hits, filters, pages and explains', async () => {
    const { docs } = await library();
    const { records, plan } = await docs.find({ search: 'queue', explain: true });
    expect(records.map(({ key }) => key)).toEqual(['1', '0', '2']);
    expect(records[1]!.highlights).toEqual({
      title: ['Durable <mark>queue</mark>'],
      body: ['A durable <mark>queue</mark> keeps its tasks on disk, beside Redis.'],
    });
    expect(plan).toMatchObject({ index: 'search:title,body,tags', fullScan: false });
    const second = await docs.find({ search: 'queue', limit: 1, offset: 1 });
    expect(second.records.map(({ key }) => key)).toEqual(['0']);
    const filtered = await docs.find({ search: 'queue', filter: { title: { prefix: 'G' } } });
    expect(filtered.records.map(({ key }) => key)).toEqual(['2']);
    const plain = await docs.find({ search: { text: 'queue', highlight: false } });
    expect(plain.records[0]).not.toHaveProperty('highlights');
    await expect(docs.find({ search: 'a', orderBy: { title: 'asc' } })).rejects.toThrow('search');
  });

  test('any: a phrase counts as one word; fields limit the highlights, too', async () => {
    const { db } = await library();
    const notes = db.collection('notes');
    await db.catalog.createIndex('notes', { search: ['a', 'b'], language: 'en' });
    await notes.insertWithKey('both', { a: 'exact phrase', b: 'prelude' });
    await notes.insertWithKey('word', { a: 'Preludes', b: 'exact' });
    await notes.insertWithKey('apart', { a: 'phrase, exact', b: 'nothing' });
    const keys = async (search: object) =>
      (await notes.find({ search: search as never })).records.map(({ key }) => key).sort();
    const text = '"exact phrase" prelude';
    expect(await keys({ text, mode: 'any' })).toEqual(['both', 'word']);
    expect(await keys({ text: '"exact phrase"', mode: 'any' })).toEqual(['both']);
    expect(await keys({ text: `${text} -nothing`, mode: 'any' })).toEqual(['both', 'word']);
    expect(await keys({ text: 'exact -"exact phrase"', mode: 'any' })).toEqual(['apart', 'word']);
    expect(await keys({ text })).toEqual(['both']);
    const fields = ['a'];
    const { records } = await notes.find({
      search: { text: 'exact prelude', mode: 'any', fields },
    });
    expect(records.map(({ highlights }) => Object.keys(highlights!))).toEqual([
      ['a'],
      ['a'],
      ['a'],
    ]);
  });

  test('sees its own writes in a transaction, and only committed ones outside', async () => {
    const { db, docs } = await library('none');
    const keys = async (of: typeof docs) =>
      (await of.find({ search: 'durable' })).records.map(({ key }) => key).join('');
    await db.transaction(async (tx) => {
      const own = tx.collection(docs);
      await own.update({ key: '0' }, { $set: { body: 'changed', title: 'changed' } });
      await own.insertWithKey('9', { title: 'Durable durable durable' });
      expect(await keys(own)).toBe('921');
      expect(await keys(docs)).toBe('021');
    });
    expect(await keys(docs)).toBe('921');
    await docs.deleteByKey('9');
    expect(await keys(docs)).toBe('21');
    expect((await db.verify()).problems).toEqual([]);
  });

  test('is refused in a transaction that began before the index was ready', async () => {
    const db = await scratch.open();
    const docs = db.collection('docs');
    await docs.insert({ title: 'durable' });
    const tx = await db.begin();
    await db.catalog.createIndex('docs', { search: ['title'] });
    await db.indexesBuilt();
    await expect(tx.collection(docs).find({ search: 'durable' })).rejects.toThrow(
      'The index docs(search:title) was not ready when the transaction began. Begin another one.',
    );
    tx.rollback();
    expect((await docs.find({ search: 'durable' })).records).toHaveLength(1);
  });

  test('is built online, survives a reopen, a rename, a drop and a compaction', async () => {
    const { db, docs } = await library();
    await db.catalog.createIndex('docs', { search: ['title'], language: 'de' });
    await db.indexesBuilt();
    await db.compact();
    const again = await scratch.reopen(db, { collections: {} });
    const [index] = again.indexes();
    expect([again.indexes().length, index?.name]).toEqual([1, 'docs(search:title)']);
    await again.catalog.rename('docs', 'texts');
    await again.indexesBuilt();
    const found = await again.collection('texts').find({ search: 'durable' });
    expect(found.records).toHaveLength(1);
    await again.catalog.dropIndex('texts', 'search:title');
    const refused = again.collection('texts').find({ search: 'durable' });
    await expect(refused).rejects.toMatchObject({ code: 'INDEX_REQUIRED' });
    expect((await again.verify()).problems).toEqual([]);
    expect(docs.name).toBe('docs');
  });

  test('a text of more than 1 MiB is indexed by its beginning, and explain says so', async () => {
    const { docs } = await library('none');
    await docs.insert({ body: `first ${'x '.repeat(540_000)} last` });
    const { records, plan } = await docs.find({ search: 'first', explain: true });
    expect([records.length, plan?.note]).toEqual([1, expect.stringContaining('1 MiB')]);
    expect((await docs.find({ search: 'last' })).records).toEqual([]);
  });

  test('refuses an index that cannot be one', async () => {
    const { db } = await library();
    for (const bad of [
      { search: ['a'], language: 'klingon' },
      { search: ['a'], weights: { b: 1 } },
      { search: [] },
      { search: ['a'], unique: true },
      { fields: ['a'], language: 'en' },
    ]) {
      await expect(db.catalog.createIndex('docs', bad as never)).rejects.toMatchObject({
        code: 'BAD_REQUEST',
      });
    }
  });
});

async function count(docs: Awaited<ReturnType<typeof library>>['docs'], query: unknown) {
  let found = 0;
  for await (const _record of docs.stream({ search: query as never })) found++;
  return found;
}

test('search: finds what reading every text would, after any writes, merges and reopens', async () => {
  const names = ['alpha', 'beta', 'gamma', 'delta', 'betas', 'gammas'];
  const word = fc.constantFrom(...names);
  const text = fc.array(word, { maxLength: 5 }).map((words) => words.join(' '));
  const change = fc.tuple(fc.integer({ min: 0, max: 9 }), fc.option(text));
  const step = fc.oneof(
    { weight: 8, arbitrary: fc.array(change, { minLength: 1, maxLength: 4 }) },
    { weight: 1, arbitrary: fc.constant('reopen' as const) },
  );
  const steps = fc.array(step, { minLength: 20, maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(steps, fc.array(word), async (all, wanted) => {
      const options = { collections: { c: { indexes: [{ search: ['t'] }] } } };
      let db = await scratch.open(options);
      const model = new Map<string, string>();
      for (const each of all) {
        if (each === 'reopen') db = await scratch.reopen(db, options);
        else await db.transaction((tx) => apply(tx.collection('c'), model, each));
      }
      const words = wanted.slice(0, 2);
      if (words.length === 0) words.push('alpha');
      const keysOf = async (search: string | { text: string; mode: 'any' }) => {
        const { records } = await db.collection('c').find({ search });
        return records.map(({ key }) => key).sort();
      };
      const matching = (test: (has: (word: string) => boolean) => boolean) =>
        [...model]
          .filter(([, t]) => test((each) => t.split(' ').includes(each)))
          .map(([key]) => key)
          .sort();
      expect(await keysOf(words.join(' '))).toEqual(matching((has) => words.every(has)));
      const any = { text: words.join(' '), mode: 'any' as const };
      expect(await keysOf(any)).toEqual(matching((has) => words.some(has)));
      const [first] = words;
      expect(await keysOf(`alpha -${first!}`)).toEqual(
        matching((has) => has('alpha') && !has(first!)),
      );
      expect(await keysOf('be*')).toEqual(matching((has) => has('beta') || has('betas')));
      expect((await db.verify()).problems).toEqual([]);
      await db.close();
    }),
    { numRuns: 15 },
  );
});

type Writable = Pick<
  ReturnType<Awaited<ReturnType<typeof scratch.open>>['collection']>,
  'deleteByKey' | 'upsert'
>;

async function apply(
  c: Writable,
  model: Map<string, string>,
  changes: readonly [number, string | null][],
): Promise<void> {
  for (const [n, t] of changes) {
    const key = String(n);
    if (t !== null) {
      model.set(key, t);
      await c.upsert(key, { t });
    } else if (model.delete(key)) await c.deleteByKey(key);
  }
}
