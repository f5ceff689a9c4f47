import { describe, expect, test } from 'vitest';
import { problemsOf } from './consistency.test-support.js';
import type { Database } from '../src/api/database.js';
import { refusalOf, useScratch } from './scratch.test-support.js';

const scratch = useScratch();

/** The next commit does not reach the disk; those after it do. */
function failNextCommit(db: Database): void {
  const { store } = db.core;
  const commit = store.commit.bind(store);
  store.commit = async () => {
    store.commit = commit;
    await new Promise((resolve) => setTimeout(resolve, 20));
    throw new Error('ENOSPC: no space left on device');
  };
}

const soon = () => new Promise((resolve) => setTimeout(resolve, 5));

describe('after a commit that failed', () => {
  test('the caller hears DISK_FULL and the database goes on', async () => {
    const db = await scratch.open();
    const notes = db.collection('notes');
    const saved = await notes.insert({ n: 1 });
    failNextCommit(db);
    expect((await refusalOf(notes.insert({ n: 2 }))).code).toBe('DISK_FULL');
    expect((await notes.findById(saved.id))?.data).toEqual({ n: 1 });
    expect((await notes.insert({ n: 3 })).seq).toBe(2);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('a collection that was not made does not share its number with the next one', async () => {
    let db = await scratch.open();
    failNextCommit(db);
    await refusalOf(db.collection('first').insert({ n: 1 }));
    const second = await db.collection('second').insertWithKey('k', { n: 2 });
    const first = await db.collection('first').insertWithKey('k', { n: 1 });
    db = await scratch.reopen(db);
    expect(await db.collection('first').findById(second.id)).toBeUndefined();
    expect((await db.collection('first').findByKey('k'))?.id).toBe(first.id);
    expect((await db.collection('second').findByKey('k'))?.id).toBe(second.id);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('writes that counted on the collection find it when they run again', async () => {
    let db = await scratch.open();
    await db.collection('old').insert({});
    failNextCommit(db);
    const lost = refusalOf(db.collection('old').insert({}));
    await soon();
    // Made in the batch after the failing one, so its job runs twice.
    const making = db.collection('fresh').insertWithKey('a', { n: 1 });
    await soon();
    const relying = db.collection('fresh').insertWithKey('b', { n: 2 });
    expect((await lost).code).toBe('DISK_FULL');
    await Promise.all([making, relying]);
    db = await scratch.reopen(db);
    expect((await db.collection('fresh').findByKey('a'))?.data).toEqual({ n: 1 });
    expect((await db.collection('fresh').findByKey('b'))?.data).toEqual({ n: 2 });
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('documents of a new shape can be read after a reopen', async () => {
    let db = await scratch.open();
    const notes = db.collection('notes');
    await notes.insert({ a: 1 });
    failNextCommit(db);
    const lost = refusalOf(notes.insert({ b: 1, c: { d: 2 } }));
    await soon();
    const saved = await Promise.all([notes.insert({ b: 3, c: { d: 4 } }), notes.insert({ e: 5 })]);
    expect((await lost).code).toBe('DISK_FULL');
    db = await scratch.reopen(db);
    const read = await Promise.all(saved.map(({ id }) => db.collection('notes').findById(id)));
    expect(read.map((each) => each?.data)).toEqual([{ b: 3, c: { d: 4 } }, { e: 5 }]);
  });

  test('a search index has the words of the commits that did not fail, and no others', async () => {
    const db = await scratch.open({ collections: { notes: { indexes: [{ search: ['text'] }] } } });
    const notes = db.collection('notes');
    const keysOf = async (search: string) =>
      (await notes.find({ search, limit: 1_000 })).records.map(({ key }) => key);
    // One by one, so that merges of small segments are in the commits that fail, and after them.
    for (let n = 0; n < 150; n++) {
      if (n % 5 === 3 || n % 8 === 7) {
        failNextCommit(db);
        const lost = notes.insertWithKey(`k${n}`, { text: `lost l${n}` });
        expect((await refusalOf(lost)).code).toBe('DISK_FULL');
      }
      // As many words and bytes as the lost one has.
      await notes.upsert(`k${n % 120}`, { text: `kept k${n}` });
    }
    expect(await keysOf('lost')).toEqual([]);
    expect((await keysOf('kept')).length).toBe(120);
    expect(await keysOf('k7')).toEqual([]);
    expect(await keysOf('k127')).toEqual(['k7']);
    expect(await keysOf('k63')).toEqual(['k63']);
    expect((await db.verify()).problems).toEqual([]);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('a request id may be sent again and works', async () => {
    const db = await scratch.open();
    const notes = db.collection('notes');
    await notes.insert({});
    failNextCommit(db);
    expect((await refusalOf(notes.insert({ n: 1 }, { requestId: 'r' }))).code).toBe('DISK_FULL');
    const { id } = await notes.insert({ n: 1 }, { requestId: 'r' });
    expect((await notes.insert({ n: 1 }, { requestId: 'r' })).id).toBe(id);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('a transaction whose commit failed is gone whole', async () => {
    const db = await scratch.open({
      collections: { a: { indexes: [{ fields: ['n'], unique: true }] } },
    });
    const { id } = await db.collection('a').insertWithKey('k', { n: 1 });
    const transaction = db.transactions.begin();
    await db.collection('a').update(id, { n: 2 }, { transaction });
    await db.collection('b').insert({ n: 2 }, { transaction });
    failNextCommit(db);
    const commit = db.transactions.commit(transaction.id);
    expect((await refusalOf(commit)).code).toBe('DISK_FULL');
    expect((await db.collection('a').findById(id))?.data).toEqual({ n: 1 });
    await db.collection('a').insert({ n: 2 });
    expect(problemsOf(db.core)).toEqual([]);
  });
});

describe('what an index knows of its entries', () => {
  const collections = { docs: { indexes: [{ fields: ['a'] }] } };

  test('reaches the disk also when it changes while a commit is under way', async () => {
    let db = await scratch.open({ collections });
    await db.indexesBuilt();
    const docs = db.collection('docs');
    await docs.insert({ a: 1 });
    const { store } = db.core;
    const commit = store.commit.bind(store);
    store.commit = async (...args) => {
      store.commit = commit;
      await commit(...args);
      await new Promise((resolve) => setTimeout(resolve, 20));
    };
    const first = docs.insert({ a: 'x'.repeat(3_000) });
    await soon();
    const second = docs.insert({ a: [1, 2] });
    await Promise.all([first, second]);
    expect(db.indexes()[0]).toMatchObject({ multi: true, cut: true });
    db = await scratch.reopen(db, { collections });
    expect(db.indexes()[0]).toMatchObject({ multi: true, cut: true, state: 'ready' });
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('reaches the disk after a commit that failed', async () => {
    let db = await scratch.open({ collections });
    await db.indexesBuilt();
    const docs = db.collection('docs');
    await docs.insert({ a: 1 });
    failNextCommit(db);
    await refusalOf(docs.insert({ a: [1, 2] }));
    await docs.insert({ a: [3, 4] });
    db = await scratch.reopen(db, { collections });
    expect(db.indexes()[0]).toMatchObject({ multi: true });
    expect(problemsOf(db.core)).toEqual([]);
  });
});

describe('relaxed durability', () => {
  test('lets a caller read a write that was confirmed', async () => {
    const db = await scratch.open({ durability: 'relaxed' });
    const notes = db.collection('notes');
    for (let i = 0; i < 20; i++) {
      const { id } = await notes.insertWithKey(`k${i}`, { i });
      expect((await notes.findById(id))?.data).toEqual({ i });
      expect((await notes.findByKey(`k${i}`))?.id).toBe(id);
      const transaction = db.transactions.begin();
      expect(await notes.findById(id, { transaction })).toBeDefined();
      db.transactions.rollback(transaction.id);
    }
  });

  test('has everything on disk after close', async () => {
    let db = await scratch.open({ durability: 'relaxed' });
    const made = await Promise.all(
      Array.from({ length: 50 }, (_, i) => db.collection('notes').insert({ i })),
    );
    db = await scratch.reopen(db);
    for (const { id } of made) expect(await db.collection('notes').findById(id)).toBeDefined();
    expect(problemsOf(db.core)).toEqual([]);
  });
});
