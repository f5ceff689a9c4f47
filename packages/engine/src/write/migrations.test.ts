import { describe, expect, test } from 'vitest';
import { refusalOf, useScratch } from '../../test/scratch.test-support.js';
import { runUntilKilled } from '../../test/killed-process.test-support.js';
import type { Database } from '../api/database.js';
import type { Migration } from '../value/migrations.js';

const scratch = useScratch();
type Doc = Record<string, any>;

const join: Migration = {
  version: 1,
  up: ({ first, last, ...rest }: Doc) => ({ ...rest, full: `${first} ${last}` }),
};
const count: Migration = {
  version: 2,
  up: (doc: Doc) => void (doc['letters'] = doc['full'].length),
};
const people = (...migrations: Migration[]) => ({
  collections: { people: { migrations, indexes: [{ fields: ['full'] }, { fields: ['first'] }] } },
});

async function filled(size: number): Promise<Database> {
  const db = await scratch.open({ collections: { people: { indexes: [{ fields: ['first'] }] } } });
  const docs = Array.from({ length: size }, (_, n) => ({ first: `F${n}`, last: 'L', n }));
  for (let i = 0; i < size; i += 1_000) {
    await db.collection('people').insertMany(docs.slice(i, i + 1_000));
  }
  await db.collection('people').insertWithKey('ada', { first: 'Ada', last: 'King', n: -1 });
  return db;
}

describe('migrations', () => {
  test('reads, filters and updates before the end see the last version', async () => {
    const db = await scratch.reopen(await filled(1_500), people(join, count));
    const docs = db.collection<Doc>('people');
    // The first batches of the background run are not awaited here.
    const ada = await docs.findByKey('ada');
    expect(ada).toMatchObject({ data: { full: 'Ada King', letters: 8, n: -1 } });
    expect((await docs.find({ filter: { full: 'Ada King' } })).records).toHaveLength(1);
    expect(await docs.count({ first: { exists: true } })).toBe(0);
    expect(await docs.count({ full: { prefix: 'F14' } })).toBe(111);
    const totals = await docs.aggregate({
      aggregates: [{ name: 'sum', op: 'sum', field: 'letters' }],
    });
    await db.transaction(async (tx) => {
      const inside = tx.collection<Doc>('people');
      expect((await inside.find({ filter: { full: 'F7 L' } })).records).toHaveLength(1);
    });
    const changed = await docs.updateByKey('ada', { $inc: { letters: 1 } });
    expect(changed.data).toEqual({ full: 'Ada King', letters: 9, n: -1 });
    await db.migrated();
    const after = await docs.find({ filter: { full: 'F1499 L' }, explain: true });
    expect(after.records[0]).toMatchObject({ rev: 2, data: { full: 'F1499 L', letters: 7 } });
    expect(after.plan).toMatchObject({ index: 'full', fullScan: false });
    expect(totals.groups[0]?.values['sum']).toBe(
      (await docs.find({ limit: 10_000 })).records.reduce(
        (sum, { data }) => sum + data['letters'],
        -1,
      ),
    );
    expect((await docs.findByKey('ada'))?.data['letters']).toBe(9);
    expect((await db.verify()).problems).toEqual([]);
  });

  test('run once, and new versions continue where the last one ended', async () => {
    let calls = 0;
    const counted: Migration = { ...join, up: (doc) => (calls++, join.up(doc)) };
    let db = await scratch.reopen(await filled(10), people(counted));
    await db.migrated();
    expect(calls).toBe(11);
    db = await scratch.reopen(db, people(counted));
    await db.collection('people').insert({ full: 'New One', n: 99 });
    db = await scratch.reopen(db, people(counted, count));
    await db.migrated();
    expect(calls).toBe(11);
    const { records } = await db.collection<Doc>('people').find({});
    expect(records.every(({ data }) => data['letters'] === data['full'].length)).toBe(true);
    // An empty collection begins with the last version.
    db = await scratch.reopen(db, { collections: { fresh: { migrations: [join] } } });
    await db.collection('fresh').insert({ full: 'x' });
    db = await scratch.reopen(db, { collections: { fresh: { migrations: [join, count] } } });
    await db.migrated();
    expect((await db.collection('fresh').findOne({}))?.data).toEqual({ full: 'x', letters: 1 });
  });

  test('a failing up refuses reads of that record alone, and is repeated after a repair', async () => {
    const broken: Migration = {
      version: 1,
      up: (doc: Doc) => {
        if (doc['n'] === 3) throw new Error('no n3');
        return join.up(doc);
      },
    };
    const before = await filled(250);
    const [third] = (await before.collection('people').find({ filter: { n: 3 } })).records;
    let db = await scratch.reopen(before, people(broken));
    const docs = db.collection<Doc>('people');
    const refused = await refusalOf(db.migrated());
    expect(refused.code).toBe('MIGRATION_FAILED');
    expect(refused.message).toContain(`failed for the record ${third!.id}: no n3`);
    expect((await refusalOf(docs.findById(third!.id))).code).toBe('MIGRATION_FAILED');
    expect((await refusalOf(docs.find({ filter: { n: 3 } }))).code).toBe('MIGRATION_FAILED');
    expect((await docs.findByKey('ada'))?.data).toEqual({ full: 'Ada King', n: -1 });
    db = await scratch.reopen(db, people(join));
    await db.migrated();
    expect((await db.collection('people').findById(third!.id))?.data).toEqual({
      full: 'F3 L',
      n: 3,
    });
    expect((await db.verify()).problems).toEqual([]);
  });

  test('versions are unique and rise by one, and none may be missing', async () => {
    const db = await filled(3);
    const wrong: [Migration[], string][] = [
      [[join, join], 'must be unique and rise by one: 1 comes after 1'],
      [[join, { ...count, version: 3 }], '3 comes after 1'],
      [[{ ...join, version: 0 }], 'not a whole number from 1 on: 0'],
      [[{ version: 1 } as Migration], 'lack the function up'],
      [[count], 'has documents of version 0, and its migrations begin with 2'],
    ];
    await db.close();
    for (const [migrations, problem] of wrong) {
      await expect(scratch.open(people(...migrations), db.directory)).rejects.toThrow(problem);
    }
    const newer = await scratch.open(people(join, count), db.directory);
    await newer.migrated();
    await expect(scratch.reopen(newer, people(join))).rejects.toThrow('its migrations end with 1');
  });

  test('a killed run is resumed, no record is migrated twice', async () => {
    const db = await filled(1_000);
    await db.close();
    for (const after of [1, 350]) {
      await runUntilKilled('test/killed-work.test-support.ts', 'migrateUntil', db.directory, after);
    }
    const again = await scratch.open(people(join), db.directory);
    await again.migrated();
    const { records } = await again.collection<Doc>('people').find({ limit: 10_000 });
    expect(records).toHaveLength(1_001);
    for (const { data, rev } of records) {
      expect([Object.keys(data).sort(), rev]).toEqual([['full', 'n'], 2]);
      expect(data['full']).toBe(data['n'] < 0 ? 'Ada King' : `F${data['n']} L`);
    }
    expect((await again.verify()).problems).toEqual([]);
  });
});
