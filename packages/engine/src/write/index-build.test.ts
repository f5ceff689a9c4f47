import { afterEach, describe, expect, test } from 'vitest';
import { problemsOf } from '../../test/consistency.test-support.js';
import type { Database } from '../api/database.js';
import { prefixKey } from '../format/keys.js';
import { runLimit } from './index-build.js';
import { refusalOf, useScratch } from '../../test/scratch.test-support.js';

interface Doc {
  n: number;
  email?: string;
  tags?: string[];
}

const scratch = useScratch();
const byNumber = { docs: { indexes: [{ fields: ['n'] }] } };
const byEmail = { docs: { indexes: [{ fields: ['email'], unique: true }] } };

async function withDocs(count: number, make: (n: number) => Doc = (n) => ({ n })) {
  const db = await scratch.open();
  const docs = db.collection<Doc>('docs');
  await Promise.all(Array.from({ length: count }, (_, n) => docs.insertWithKey(`k${n}`, make(n))));
  return db;
}

function rowsOf(db: Database, index: number): number {
  const view = db.core.snapshot();
  try {
    const range = { start: prefixKey(index), end: prefixKey(index + 1) };
    return [...view.rows('index', range), ...view.rows('unique', range)].length;
  } finally {
    view.done();
  }
}

describe('a new index', () => {
  test('is built from the records that are there, and stays over a reopen', async () => {
    let db = await withDocs(1_000);
    db = await scratch.reopen(db, { collections: byNumber });
    expect(db.indexes()).toMatchObject([{ name: 'docs(n)', state: 'building' }]);
    await db.indexesBuilt();
    expect(db.indexes()).toMatchObject([{ id: 1, state: 'ready', problem: '', multi: false }]);
    expect(rowsOf(db, 1)).toBe(1_000);
    expect(problemsOf(db.core)).toEqual([]);
    db = await scratch.reopen(db, { collections: byNumber });
    expect(db.indexes()).toMatchObject([{ id: 1, state: 'ready' }]);
  });

  test('is kept by writes that go on while it is built', async () => {
    let db = await withDocs(2_000, (n) => ({ n, email: `e${n}`, tags: ['x', `t${n % 7}`] }));
    const collections = {
      docs: {
        indexes: [
          { fields: ['n'] },
          { fields: ['tags'] },
          { fields: ['email'], unique: true },
          { fields: ['tags', 'n'], sparse: true },
        ],
      },
    };
    db = await scratch.reopen(db, { collections });
    const docs = db.collection<Doc>('docs');
    let isBuilt = false;
    const built = db.indexesBuilt().then(() => (isBuilt = true));
    let writes = 0;
    for (let n = 0; !isBuilt || n < 200; n++) {
      const at = (n * 37) % 2_000;
      await Promise.all([
        docs.insert({ n: -n, email: `new${n}`, tags: [`t${n % 5}`] }),
        docs.upsert(`k${at}`, { n: n * 10, email: `changed${n}` }),
        docs.deleteByKey(`k${(at + 1_000) % 2_000}`).catch(() => 'gone already'),
      ]);
      writes++;
    }
    await built;
    expect(writes).toBeGreaterThan(5);
    expect(db.indexes().map(({ state }) => state)).toEqual(Array(4).fill('ready'));
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('refuses a duplicate unique value from the start', async () => {
    let db = await withDocs(3_000, (n) => ({ n, email: `e${n}` }));
    db = await scratch.reopen(db, { collections: byEmail });
    const docs = db.collection<Doc>('docs');
    await docs.insert({ n: -1, email: 'fresh' });
    const twice = docs.insert({ n: -2, email: 'fresh' });
    expect((await refusalOf(twice)).code).toBe('UNIQUE_VIOLATION');
    await db.indexesBuilt();
    expect(db.indexes()).toMatchObject([{ state: 'ready' }]);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test.each<[string, object, string]>([
    ['no fields', { fields: [] }, 'needs at least one field'],
    ['the id', { fields: ['$id'] }, 'cannot have the field $id'],
    ['a field twice', { fields: ['a', 'a'] }, 'names a field twice'],
    ['too many fields', { fields: Array.from({ length: 17 }, (_, i) => `f${i}`) }, 'more than 16'],
  ])(
    'with %s is refused at open, and the database can be opened without it',
    async (_w, bad, why) => {
      const db = await withDocs(10);
      await db.close();
      const collections = { docs: { indexes: [bad as { fields: string[] }] } };
      const timers = scratch.clock.timers;
      await expect(scratch.open({ collections }, db.directory)).rejects.toThrow(why);
      expect(scratch.clock.timers).toBe(timers);
      const again = await scratch.open({}, db.directory);
      expect(await again.collection('docs').findByKey('k3')).toBeDefined();
      expect(again.indexes()).toEqual([]);
    },
  );
});

describe('a unique index over duplicates', () => {
  test('fails with a clear problem, and the database goes on without it', async () => {
    let db = await withDocs(600, (n) => ({ n, email: `e${n % 500}` }));
    db = await scratch.reopen(db, { collections: byEmail });
    await db.indexesBuilt();
    expect(db.indexes()).toMatchObject([{ state: 'failed' }]);
    expect(db.indexes()[0]?.problem).toContain('already has this value of email');
    const docs = db.collection<Doc>('docs');
    await docs.insert({ n: 1, email: 'e1' });
    await docs.updateByKey('k1', { n: 2, email: 'e2' });
    await docs.deleteByKey('k2');
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('is rebuilt at the next open, when the duplicates are gone', async () => {
    let db = await withDocs(300, (n) => ({ n, email: `e${n % 299}` }));
    db = await scratch.reopen(db, { collections: byEmail });
    await db.indexesBuilt();
    expect(db.indexes()).toMatchObject([{ state: 'failed' }]);
    await db.collection('docs').deleteByKey('k299');
    db = await scratch.reopen(db, { collections: byEmail });
    await db.indexesBuilt();
    expect(db.indexes()).toMatchObject([{ state: 'ready', problem: '' }]);
    expect(rowsOf(db, 1)).toBe(0);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('does not fail for one that has expired', async () => {
    let db = await scratch.open();
    await db.collection<Doc>('docs').insert({ n: 1, email: 'x' }, { ttlMs: 10 });
    await db.collection<Doc>('docs').insert({ n: 2, email: 'x' });
    scratch.clock.skip(10);
    db = await scratch.reopen(db, { collections: byEmail });
    await db.indexesBuilt();
    expect(db.indexes()).toMatchObject([{ state: 'ready' }]);
    await db.sweepExpired();
    expect(problemsOf(db.core)).toEqual([]);
  });
});

describe('a build in several runs', () => {
  const { bytes } = runLimit;
  afterEach(() => void (runLimit.bytes = bytes));

  interface Point {
    n: number;
    tags: string[];
    v: number[];
  }
  const point = (n: number): Point => ({ n, tags: ['all', `t${n % 7}`], v: [n, 1] });
  const collections = {
    docs: { indexes: [{ fields: ['n'] }, { fields: ['tags'] }, { vector: 'v', dims: 2 }] },
  };

  test('has the entries of records that change between reading and writing', async () => {
    runLimit.bytes = 20_000;
    let db = await scratch.open();
    await db
      .collection<Point>('docs')
      .bulkWrite(
        Array.from({ length: 3_000 }, (_, n) => ({ upsert: { key: `k${n}`, data: point(n) } })),
      );
    db = await scratch.reopen(db, { collections });
    const docs = db.collection<Point>('docs');
    // Each run reads, sorts and writes: these writes fall between the two.
    const { writer } = db.core;
    const submitDerived = writer.submitDerived.bind(writer);
    let runs = 0;
    writer.submitDerived = (job) => {
      const n = 61 * runs++;
      const writes = [
        docs.upsert(`k${n % 3_000}`, { ...point(-n), tags: ['all', 'new'] }),
        docs.upsert(`k${(n + 7) % 3_000}`, { ...point(n), v: [5, -n] }),
        docs.deleteByKey(`k${(n + 1_500) % 3_000}`).catch(() => 'gone already'),
      ];
      return Promise.all(writes).then(() => submitDerived(job));
    };
    await Promise.all([db.indexesBuilt(), db.compact()]);
    expect(runs).toBeGreaterThan(20);
    expect(db.indexes().map(({ state }) => state)).toEqual(['ready', 'ready', 'ready']);
    expect(problemsOf(db.core)).toEqual([]);
    db = await scratch.reopen(db, { collections });
    expect(db.indexes().map(({ state }) => state)).toEqual(['ready', 'ready', 'ready']);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('ignores changes that did not reach the disk', async () => {
    let db = await withDocs(500);
    db = await scratch.reopen(db, { collections: byNumber });
    const { writer, store } = db.core;
    const submitDerived = writer.submitDerived.bind(writer);
    const commit = store.commit.bind(store);
    writer.submitDerived = async (job) => {
      store.commit = () => Promise.reject(new Error('ENOSPC: no space left on device'));
      const refused = db.collection<Doc>('docs').upsert('k7', { n: -7 });
      expect((await refusalOf(refused)).code).toBe('DISK_FULL');
      store.commit = commit;
      return submitDerived(job);
    };
    await db.indexesBuilt();
    expect(db.indexes()).toMatchObject([{ state: 'ready' }]);
    expect(rowsOf(db, 1)).toBe(500);
    expect(problemsOf(db.core)).toEqual([]);
  });
});

describe('while a build writes its rows', () => {
  const values = (n: number) => ({ n, email: `e${n % 13}` });

  async function building() {
    const db = await withDocs(30_000, values);
    const { store } = db.core;
    const commit = store.commitDerived.bind(store);
    /** Calls `act` once, with a batch under way. */
    const during = (act: () => void) => {
      let batches = 0;
      store.commitDerived = (...args) => {
        const committed = commit(...args);
        if (++batches === 2) act();
        return committed;
      };
    };
    return { db, during };
  }

  const create = (db: Database, field: string) =>
    db.catalog.createIndex('docs', { fields: [field] });

  test('a drop leaves nothing of it', async () => {
    const { db, during } = await building();
    let dropped: Promise<number> | undefined;
    during(() => void (dropped = db.catalog.dropIndex('docs', 'email')));
    const { index } = await create(db, 'email');
    await db.indexesBuilt();
    expect(await dropped).toBeGreaterThan(0);
    expect(db.indexes()).toEqual([]);
    expect(rowsOf(db, index.id)).toBe(0);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('a compaction that starts has them', async () => {
    const { db, during } = await building();
    let compacted: Promise<unknown> | undefined;
    during(() => void (compacted = db.compact()));
    const { index } = await create(db, 'n');
    await db.indexesBuilt();
    expect(compacted).toBeDefined();
    await compacted;
    expect(rowsOf(db, index.id)).toBe(30_000);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('a record that cannot be read fails it, and the database goes on', async () => {
    const { db, during } = await building();
    const { core } = db;
    during(() => {
      const { touched, compiled } = core.catalog.indexes()[0]!;
      for (const { id } of core.view().scan(core.catalog.find('docs')!.id, {}, () => true)) {
        touched!.add(id);
      }
      compiled.entriesOf = () => {
        throw new Error('The record is damaged');
      };
    });
    await create(db, 'n');
    await db.indexesBuilt();
    expect(db.indexes()).toMatchObject([{ state: 'failed', problem: 'The record is damaged' }]);
    await db.collection<Doc>('docs').insert({ n: 1 });
    expect(await db.collection('docs').count()).toBe(30_001);
  });
});

describe('an index that is no longer declared', () => {
  test('is dropped with all its rows; the others stay', async () => {
    const both = { docs: { indexes: [...byNumber.docs.indexes, ...byEmail.docs.indexes] } };
    let db = await withDocs(5_000, (n) => ({ n, email: `e${n}` }));
    db = await scratch.reopen(db, { collections: both });
    await db.indexesBuilt();
    db = await scratch.reopen(db, { collections: byNumber });
    expect(db.indexes()).toMatchObject([{ id: 1, name: 'docs(n)', state: 'ready' }]);
    expect(rowsOf(db, 2)).toBe(0);
    expect(problemsOf(db.core)).toEqual([]);
    db = await scratch.reopen(db, { collections: both });
    await db.indexesBuilt();
    expect(db.indexes().map(({ id }) => id)).toEqual([1, 3]);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('whose removal was cut short is not taken for a whole one', async () => {
    let db = await withDocs(5_000, (n) => ({ n, email: `e${n}` }));
    db = await scratch.reopen(db, { collections: byNumber });
    await db.indexesBuilt();
    await db.close();
    // The removal takes a few commits; the third one never reaches the disk.
    const { Store } = await import('../storage/store.js');
    const commit = Store.prototype.commit;
    let commits = 0;
    Store.prototype.commit = async function (...args) {
      if (++commits > 2) throw new Error('the power went out');
      await commit.apply(this, args);
    };
    try {
      await expect(scratch.open({}, db.directory)).rejects.toThrow('the power went out');
    } finally {
      Store.prototype.commit = commit;
    }
    expect(commits).toBe(3);
    expect(scratch.clock.timers).toBe(0);
    const again = await scratch.open({ collections: byNumber }, db.directory);
    await again.indexesBuilt();
    expect(again.indexes()).toMatchObject([{ state: 'ready' }]);
    expect(rowsOf(again, again.indexes()[0]!.id)).toBe(5_000);
    expect(problemsOf(again.core)).toEqual([]);
  });
});

describe('a build that is cut short', () => {
  test('goes on after a reopen', async () => {
    let db = await withDocs(3_000, (n) => ({ n, tags: ['a', `${n}`] }));
    const collections = { docs: { indexes: [{ fields: ['tags'] }] } };
    db = await scratch.reopen(db, { collections });
    db = await scratch.reopen(db, { collections });
    expect(db.indexes()).toMatchObject([{ id: 1, state: 'building' }]);
    await db.collection<Doc>('docs').updateByKey('k7', { n: 7, tags: ['changed'] });
    db = await scratch.reopen(db, { collections });
    await db.collection<Doc>('docs').deleteByKey('k8');
    await db.indexesBuilt();
    expect(db.indexes()).toMatchObject([{ id: 1, state: 'ready', multi: true }]);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('by a full disk fails, is reported, and does not prevent closing', async () => {
    let db = await withDocs(1_000);
    db = await scratch.reopen(db, { collections: byNumber });
    const { store } = db.core;
    const commit = store.commit.bind(store);
    store.commit = () => Promise.reject(new Error('ENOSPC: no space left on device'));
    await db.indexesBuilt();
    expect(db.indexes()).toMatchObject([{ state: 'failed' }]);
    expect(db.indexes()[0]?.problem).toContain('disk is full');
    store.commit = commit;
    db = await scratch.reopen(db, { collections: byNumber });
    await db.indexesBuilt();
    expect(db.indexes()).toMatchObject([{ state: 'ready' }]);
    expect(problemsOf(db.core)).toEqual([]);
  });
});
