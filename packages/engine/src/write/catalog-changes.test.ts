import { join } from 'node:path';
import { Refusal } from '@millrace/kit/errors';
import { describe, expect, test } from 'vitest';
import { restore } from '../maintain/backup/restore.js';
import { problemsOf } from '../../test/consistency.test-support.js';
import type { Database } from '../api/database.js';
import { applyCommit } from '../maintain/replica/apply-commit.js';
import { asIncoming } from '../maintain/replica/replica.test-support.js';
import { commitsOf, useScratch } from '../../test/scratch.test-support.js';

const scratch = useScratch();

async function codeOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof Refusal) return error.code;
  throw new Error('It was not refused', { cause: error });
}

const namesOf = (db: Database) => db.catalog.collections().map(({ name }) => name);
const indexesOf = (db: Database) => db.indexes().map(({ name, state }) => `${name} ${state}`);

async function fill(db: Database, name: string, count: number): Promise<void> {
  const operations = Array.from({ length: count }, (_, n) => ({
    insert: { key: `k${n}`, data: { n, group: n % 3 } },
  }));
  await db.collection(name).bulkWrite(operations);
}

async function expectSound(db: Database): Promise<void> {
  expect(problemsOf(db.core)).toEqual([]);
  expect((await db.verify()).problems).toEqual([]);
}

async function followed(leader: Database): Promise<Database> {
  const follower = await scratch.open();
  for (const commit of commitsOf(leader)) {
    await applyCommit(follower.core, asIncoming(leader, commit));
  }
  await follower.indexesBuilt();
  return follower;
}

describe('collection: drop', () => {
  test('deletes records, schema and indexes, and the collection is gone after a restart', async () => {
    let db = await scratch.open();
    await fill(db, 'people', 2_500);
    await fill(db, 'other', 1);
    await db.schemas.set('people', { required: ['n'] });
    await db.catalog.createIndex('people', { fields: ['n'] });
    expect(await db.catalog.drop('people')).toEqual({
      deleted: 2_500,
      seq: db.logPosition.seq,
    });
    await db.indexesBuilt();
    for (let round = 0; round < 2; round++) {
      expect(namesOf(db)).toEqual(['other']);
      expect([db.indexes(), await db.schemas.list()]).toEqual([[], []]);
      expect(await db.collection('people').count()).toBe(0);
      await expectSound(db);
      db = await scratch.reopen(db);
    }
    expect(await codeOf(db.catalog.drop('people'))).toBe('COLLECTION_NOT_FOUND');
    await db.collection('people').insertWithKey('k0', {});
    expect(namesOf(db).toSorted()).toEqual(['other', 'people']);
    const follower = await followed(db);
    expect(namesOf(follower).toSorted()).toEqual(['other', 'people']);
  });

  test('a follower and a restored backup do not have it either', async () => {
    const db = await scratch.open();
    await fill(db, 'people', 10);
    const file = join(scratch.directory(), 'full');
    const { header } = await db.writeBackup(file);
    await db.catalog.drop('people');
    expect(namesOf(await followed(db))).toEqual([]);
    const more = join(scratch.directory(), 'more');
    await db.writeBackup(more, { sinceSeq: header.seq });
    const directory = join(scratch.directory(), 'restored');
    await restore([file, more], directory, { clock: scratch.clock });
    const copy = await scratch.open({}, directory);
    expect(namesOf(copy)).toEqual([]);
    await expectSound(copy);
  });
});

describe('collection: rename', () => {
  test('keeps ids, keys, revisions, times, schema and indexes', async () => {
    let db = await scratch.open();
    await fill(db, 'people', 2_300);
    await db.collection('people').mergeByKey('k1', { n: -1 });
    await db.schemas.set('people', { required: ['n'] });
    await db.catalog.createIndex('people', { fields: ['group', 'n'] });
    scratch.clock.skip(5_000);
    const shown = async (name: string) => {
      const { records } = await db.collection(name).find({ limit: 5_000 });
      return records.map(({ seq: _seq, ...rest }) => rest);
    };
    const before = await shown('people');
    expect(await db.catalog.rename('people', 'persons')).toEqual({
      moved: 2_300,
      seq: db.logPosition.seq,
    });
    await db.indexesBuilt();
    const follower = await followed(db);
    for (const each of [db, follower]) {
      expect(namesOf(each)).toEqual(['persons']);
      expect(indexesOf(each)).toEqual(['persons(group,n) ready']);
      expect(await each.schemas.list()).toMatchObject([{ collection: 'persons' }]);
      await expectSound(each);
    }
    expect(await shown('persons')).toEqual(before);
    db = await scratch.reopen(db);
    expect(await shown('persons')).toEqual(before);
    expect(indexesOf(db)).toEqual(['persons(group,n) ready']);
    expect(await codeOf(db.collection('persons').insert({}))).toBe('SCHEMA_VIOLATION');
  });

  test('refuses a name that is taken, unknown or not a name', async () => {
    const db = await scratch.open({ collections: { declared: {} } });
    await fill(db, 'a', 1);
    await fill(db, 'b', 1);
    expect(await codeOf(db.catalog.rename('a', 'b'))).toBe('COLLECTION_EXISTS');
    expect(await codeOf(db.catalog.rename('a', 'a'))).toBe('COLLECTION_EXISTS');
    expect(await codeOf(db.catalog.rename('none', 'c'))).toBe('COLLECTION_NOT_FOUND');
    expect(await codeOf(db.catalog.rename('a', '_x'))).toBe('BAD_COLLECTION');
    expect(await codeOf(db.catalog.rename('declared', 'c'))).toBe('DECLARED_IN_SETTINGS');
    expect(await codeOf(db.catalog.rename('a', 'declared'))).toBe('DECLARED_IN_SETTINGS');
    expect(await codeOf(db.catalog.drop('declared'))).toBe('DECLARED_IN_SETTINGS');
    await db.catalog.drop('b');
    await db.catalog.rename('a', 'b');
    expect(namesOf(db).toSorted()).toEqual(['b', 'declared']);
  });

  test('continues after a writer of the new name was in the way', async () => {
    const db = await scratch.open();
    await fill(db, 'a', 1_500);
    const [code] = await Promise.all([
      codeOf(db.catalog.rename('a', 'b')),
      db.collection('b').insertWithKey('k1400', {}),
    ]);
    expect(['DUPLICATE_KEY', 'COLLECTION_EXISTS']).toContain(code);
    await db.collection('b').deleteByKey('k1400');
    await db.catalog.rename('a', code === 'DUPLICATE_KEY' ? 'b' : 'c');
    expect(await db.collection(code === 'DUPLICATE_KEY' ? 'b' : 'c').count()).toBe(1_500);
    await expectSound(db);
  });
});

describe('index: create and drop', () => {
  test('is built, used, kept over restarts and replicated', async () => {
    let db = await scratch.open({ collections: { people: { indexes: [{ fields: ['group'] }] } } });
    await fill(db, 'people', 500);
    const { index, seq } = await db.catalog.createIndex('people', { fields: ['n'], unique: true });
    expect([index.name, seq]).toEqual(['people(n) unique', db.logPosition.seq]);
    await db.indexesBuilt();
    expect(indexesOf(db)).toEqual(['people(group) ready', 'people(n) unique ready']);
    expect(await codeOf(db.collection('people').insert({ n: 7 }))).toBe('UNIQUE_VIOLATION');
    expect(await db.catalog.createIndex('people', { fields: ['n'], unique: true })).toMatchObject({
      seq: 0,
    });
    db = await scratch.reopen(db, {
      collections: { people: { indexes: [{ fields: ['group'] }] } },
    });
    expect(indexesOf(db)).toEqual(['people(group) ready', 'people(n) unique ready']);
    expect(indexesOf(await followed(db))).toEqual(['people(n) unique ready']);
    await expectSound(db);

    expect(await codeOf(db.catalog.dropIndex('people', 'group'))).toBe('DECLARED_IN_SETTINGS');
    expect(await codeOf(db.catalog.dropIndex('people', 'none'))).toBe('INDEX_NOT_FOUND');
    await db.catalog.dropIndex('people', 'n');
    expect(indexesOf(db)).toEqual(['people(group) ready']);
    await db.collection('people').insert({ n: 7 });
    expect(indexesOf(await followed(db))).toEqual([]);
    await expectSound(db);
  });

  test('dropped while it is built, it leaves nothing behind', async () => {
    const db = await scratch.open();
    await fill(db, 'people', 3_000);
    await db.catalog.createIndex('people', { fields: ['n'] });
    await db.catalog.dropIndex('people', 'n');
    await db.indexesBuilt();
    expect(db.indexes()).toEqual([]);
    await expectSound(db);
  });

  test('a unique index over values that are not unique fails', async () => {
    const db = await scratch.open();
    await fill(db, 'people', 10);
    await db.catalog.createIndex('people', { fields: ['group'], unique: true });
    await db.indexesBuilt();
    expect(indexesOf(db)).toEqual(['people(group) unique failed']);
    expect(await codeOf(db.catalog.createIndex('people', { fields: [] }))).toBe('BAD_REQUEST');
    expect(await codeOf(db.catalog.createIndex('people', { fields: ['$id'] }))).toBe('BAD_REQUEST');
  });
});
