import { describe, expect, test } from 'vitest';
import { problemsOf } from '../../test/consistency.test-support.js';
import type { Database } from '../api/database.js';
import { refusalOf, storyOf, useScratch } from '../../test/scratch.test-support.js';
import type { Transaction } from './transactions.js';

interface Doc {
  n?: number | null;
  email?: string;
  text?: string;
}

const scratch = useScratch();
const collections = { docs: { indexes: [{ fields: ['email'], unique: true }] }, others: {} };

async function openDocs() {
  const db = await scratch.open({ collections });
  await db.indexesBuilt();
  const docs = db.collection<Doc>('docs');
  const begin = () => db.transactions.begin();
  const commit = (transaction: Transaction) => db.transactions.commit(transaction.id);
  return { db, docs, begin, commit };
}

/** Notes that the transaction has looked at everything in a collection. */
function readAll(db: Database, transaction: Transaction, collection: string): number {
  transaction.notePredicate({ collection, matches: () => true });
  const { id } = db.core.catalog.find(collection)!;
  return Array.from(transaction.view.scan(id, {}, () => true)).length;
}

describe('inside a transaction', () => {
  test('reads show the state at its beginning and its own writes', async () => {
    const { docs, begin, commit } = await openDocs();
    await docs.insertWithKey('a', { n: 1 });
    await docs.insertWithKey('b', { n: 1 });
    const transaction = begin();
    const inside = { transaction };
    await docs.updateByKey('a', { n: 2 });
    await docs.insertWithKey('c', { n: 2 });
    await docs.deleteByKey('b');
    expect((await docs.findByKey('a', inside))?.data).toEqual({ n: 1 });
    expect((await docs.findByKey('b', inside))?.data).toEqual({ n: 1 });
    expect(await docs.findByKey('c', inside)).toBeUndefined();
    const fresh = await docs.insertWithKey('d', { n: 3 }, inside);
    await docs.mergeByKey('d', { text: 'own' }, inside);
    expect((await docs.findByKey('d', inside))?.data).toEqual({ n: 3, text: 'own' });
    expect((await docs.findById(fresh.id, inside))?.data).toEqual({ n: 3, text: 'own' });
    expect(await docs.findByKey('d')).toBeUndefined();
    await docs.deleteByKey('d', inside);
    expect(await docs.findByKey('d', inside)).toBeUndefined();
    expect(await docs.findById(fresh.id, inside)).toBeUndefined();
    await refusalOf(commit(transaction));
  });

  test('has the seq it reads at', async () => {
    const { docs, begin } = await openDocs();
    await docs.insert({});
    await docs.insert({});
    expect(begin().readSeq).toBe(2);
  });

  test('every write works, and refuses as outside', async () => {
    const { db, docs, begin, commit } = await openDocs();
    const { id } = await docs.insertWithKey('a', { n: 1, email: 'a@x' });
    const transaction = begin();
    const inside = { transaction };
    const codes = await Promise.all(
      [
        docs.insertWithKey('a', {}, inside),
        docs.insert({ email: 'a@x' }, inside),
        docs.insert({}, { ...inside, id }),
        docs.updateByKey('no', {}, inside),
        docs.delete('01BX5ZZKBKACTAV9WEVGEMMVRZ', inside),
        docs.updateIfRev({ id }, 5, {}, inside),
        docs.updateIfRev({ key: 'a' }, 0, {}, inside),
        docs.insert({ n: NaN }, inside),
        docs.insertWithKey('', {}, inside),
      ].map(refusalOf),
    );
    expect(codes.map(({ code }) => code)).toEqual([
      'DUPLICATE_KEY',
      'UNIQUE_VIOLATION',
      'DUPLICATE_ID',
      'KEY_NOT_FOUND',
      'RECORD_NOT_FOUND',
      'REV_MISMATCH',
      'REV_MISMATCH',
      'BAD_DATA',
      'BAD_KEY',
    ]);
    expect((await docs.updateIfRev({ id }, 1, { n: 2 }, inside)).rev).toBe(2);
    expect((await docs.merge(id, { text: 't' }, inside)).rev).toBe(2);
    expect((await docs.upsert('b', { n: 1 }, inside)).created).toBe(true);
    expect((await docs.upsert('b', { n: 2 }, inside)).created).toBe(false);
    expect((await docs.upsertMerge('c', { n: null, text: 'c' }, inside)).record.data).toEqual({
      text: 'c',
    });
    expect((await docs.updateIfRev({ key: 'd' }, 0, { n: 4 }, inside)).rev).toBe(1);
    const result = await commit(transaction);
    expect(result).toEqual({ seq: 2, operations: 6, committedAt: scratch.clock.now() });
    expect(storyOf(db, 2)).toEqual([
      ['update docs/a rev 2', 'insert docs/b rev 1', 'insert docs/c rev 1', 'insert docs/d rev 1'],
    ]);
    expect((await docs.findById(id))?.data).toEqual({ n: 2, text: 't' });
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('a record inserted and deleted again leaves no change', async () => {
    const { db, docs, begin, commit } = await openDocs();
    const transaction = begin();
    const { id } = await docs.insertWithKey('a', { email: 'x' }, { transaction });
    await docs.delete(id, { transaction });
    expect(await commit(transaction)).toMatchObject({ seq: 0, operations: 2 });
    expect(db.core.state.seq).toBe(0);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('a deleted key can be inserted again', async () => {
    const { db, docs, begin, commit } = await openDocs();
    const old = await docs.insertWithKey('a', { n: 1, email: 'a@x' });
    const transaction = begin();
    await docs.deleteByKey('a', { transaction });
    const fresh = await docs.insertWithKey('a', { n: 2, email: 'a@x' }, { transaction });
    await commit(transaction);
    expect(await docs.findById(old.id)).toBeUndefined();
    expect(await docs.findByKey('a')).toMatchObject({ id: fresh.id, rev: 1, data: { n: 2 } });
    expect(storyOf(db, 2)).toEqual([['delete docs/a rev 1', 'insert docs/a rev 1']]);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('a deleted id can be inserted again, and continues from there', async () => {
    const { db, docs, begin, commit } = await openDocs();
    const { id } = await docs.insertWithKey('a', { n: 1 });
    const transaction = begin();
    await docs.delete(id, { transaction });
    await docs.insert({ n: 2 }, { transaction, id });
    await commit(transaction);
    expect(await docs.findById(id)).toMatchObject({ key: '', rev: 2, data: { n: 2 } });
    expect(await docs.findByKey('a')).toBeUndefined();
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('two records may swap a unique value', async () => {
    const { db, docs, begin, commit } = await openDocs();
    await docs.insertWithKey('a', { email: 'a@x' });
    await docs.insertWithKey('b', { email: 'b@x' });
    const transaction = begin();
    await docs.updateByKey('a', { email: 'free' }, { transaction });
    await docs.updateByKey('b', { email: 'a@x' }, { transaction });
    await docs.updateByKey('a', { email: 'b@x' }, { transaction });
    await commit(transaction);
    expect((await docs.findByKey('a'))?.data.email).toBe('b@x');
    expect((await docs.findByKey('b'))?.data.email).toBe('a@x');
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('two records cannot share one, and the commit keeps nothing', async () => {
    const { db, docs, begin, commit } = await openDocs();
    const transaction = begin();
    await docs.insertWithKey('a', { email: 'a@x' }, { transaction });
    const second = await docs.insertWithKey('b', { email: 'a@x' }, { transaction }).then(
      () => commit(transaction).catch((error: unknown) => error),
      (error: unknown) => error,
    );
    expect(second).toMatchObject({ code: 'UNIQUE_VIOLATION' });
    expect(await docs.findByKey('a')).toBeUndefined();
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('writes go to any collections, all of them or none', async () => {
    const { db, docs, begin, commit } = await openDocs();
    const others = db.collection<Doc>('others');
    const first = begin();
    await docs.insertWithKey('a', { n: 1 }, { transaction: first });
    await others.insertWithKey('a', { n: 1 }, { transaction: first });
    await db.collection('fresh').insertWithKey('a', { n: 1 }, { transaction: first });
    await commit(first);
    const second = begin();
    await docs.updateByKey('a', { n: 2 }, { transaction: second });
    await others.updateByKey('a', { n: 2 }, { transaction: second });
    await others.updateByKey('a', { n: 3 });
    expect((await refusalOf(commit(second))).code).toBe('TX_CONFLICT');
    expect((await docs.findByKey('a'))?.data.n).toBe(1);
    expect((await others.findByKey('a'))?.data.n).toBe(3);
    expect((await db.collection('fresh').findByKey('a'))?.data).toEqual({ n: 1 });
  });
});

describe('a conflict', () => {
  test.each<[string, (db: Database) => Promise<unknown>]>([
    ['a record it read was changed', (db) => db.collection('docs').updateByKey('a', { n: 9 })],
    ['a record it read was deleted', (db) => db.collection('docs').deleteByKey('a')],
    [
      'a record it read was deleted and came back',
      async (db) => {
        const { id } = await db.collection('docs').deleteByKey('a');
        await db.collection('docs').insert({ n: 1 }, { id });
      },
    ],
    ['a key it did not find was taken', (db) => db.collection('docs').insertWithKey('no', {})],
    ['an id it did not find was taken', (db) => db.collection('docs').insert({}, { id: absent })],
    ['what it had looked through grew', (db) => db.collection('others').insert({})],
    [
      'a key in a collection that was not there was taken',
      (db) => db.collection('later').insertWithKey('k', {}),
    ],
    [
      'an id in a collection that was not there was taken',
      (db) => db.collection('later').insert({}, { id: absent }),
    ],
  ])('is reported when %s', async (_what, disturb) => {
    const { db, docs, begin, commit } = await openDocs();
    await docs.insertWithKey('a', { n: 1 });
    const transaction = begin();
    const inside = { transaction };
    await docs.findByKey('a', inside);
    await docs.findByKey('no', inside);
    await docs.findById(absent, inside);
    readAll(db, transaction, 'others');
    await db.collection('later').findByKey('k', inside);
    await db.collection('later').findById(absent, inside);
    await docs.insertWithKey('mine', { n: 1 }, inside);
    await disturb(db);
    const refusal = await refusalOf(commit(transaction));
    expect(refusal.code).toBe('TX_CONFLICT');
    expect(refusal.extra.members).toEqual({ metadata: { tx_id: transaction.id } });
    expect(await docs.findByKey('mine')).toBeUndefined();
    expect(problemsOf(db.core)).toEqual([]);
  });

  const absent = '01BX5ZZKBKACTAV9WEVGEMMVRZ';

  test('is not made by what the transaction never looked at', async () => {
    const { db, docs, begin, commit } = await openDocs();
    await docs.insertWithKey('a', { n: 1 });
    await docs.insertWithKey('b', { n: 1 });
    const transaction = begin();
    transaction.notePredicate({ collection: 'docs', matches: (image) => image.data['n'] === 7 });
    await docs.updateByKey('a', { n: 2 }, { transaction });
    await docs.updateByKey('b', { n: 3 });
    await docs.insertWithKey('c', { n: 4 });
    await db.collection('others').insert({ n: 7 });
    await commit(transaction);
    expect((await docs.findByKey('a'))?.data.n).toBe(2);
  });

  test('is found in the part of the log that the writer has not flushed yet', async () => {
    const { db, docs, begin, commit } = await openDocs();
    const transaction = begin();
    readAll(db, transaction, 'others');
    await docs.insert({}, { transaction });
    const writing = db.collection('others').insert({});
    const committing = commit(transaction).then(
      () => 'committed',
      (error: unknown) => (error as { code: string }).code,
    );
    await writing;
    expect(await committing).toBe('TX_CONFLICT');
  });

  test('is reported when the log that would show it was trimmed', async () => {
    const { db, docs, begin, commit } = await openDocs();
    await docs.insert({});
    const transaction = begin();
    transaction.notePredicate({ collection: 'docs', matches: () => false });
    await docs.insert({}, { transaction });
    await docs.insert({});
    await db.trimLog(3);
    expect((await refusalOf(commit(transaction))).code).toBe('TX_CONFLICT');
  });

  test('lets one of two transactions through that read what the other writes', async () => {
    const { docs, begin, commit } = await openDocs();
    await docs.insertWithKey('a', { n: 1 });
    await docs.insertWithKey('b', { n: 1 });
    const [one, two] = [begin(), begin()];
    await docs.findByKey('a', { transaction: one });
    await docs.findByKey('b', { transaction: two });
    await docs.updateByKey('b', { n: 2 }, { transaction: one });
    await docs.updateByKey('a', { n: 2 }, { transaction: two });
    const ends = await Promise.allSettled([commit(one), commit(two)]);
    expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  });

  test('is reported when a refusal for a unique value no longer holds', async () => {
    const { docs, begin, commit } = await openDocs();
    await docs.insertWithKey('a', { email: 'a@x' });
    const transaction = begin();
    const taken = docs.insert({ email: 'a@x' }, { transaction });
    expect((await refusalOf(taken)).code).toBe('UNIQUE_VIOLATION');
    await docs.insert({ text: 'a@x is taken' }, { transaction });
    await docs.deleteByKey('a');
    expect((await refusalOf(commit(transaction))).code).toBe('TX_CONFLICT');
  });

  test('of a unique value taken meanwhile is a UNIQUE_VIOLATION', async () => {
    const { db, docs, begin, commit } = await openDocs();
    const transaction = begin();
    await docs.insert({ email: 'a@x' }, { transaction });
    await docs.insert({ email: 'a@x' });
    expect((await refusalOf(commit(transaction))).code).toBe('UNIQUE_VIOLATION');
    expect(problemsOf(db.core)).toEqual([]);
  });
});

describe('limits', () => {
  test('1,000 operations, and what was done till then can be committed', async () => {
    const { docs, begin, commit } = await openDocs();
    const transaction = begin();
    for (let n = 0; n < 1_000; n++) await docs.insert({ n }, { transaction });
    const refusal = await refusalOf(docs.insert({ n: 1_000 }, { transaction }));
    expect(refusal.code).toBe('TX_LIMIT');
    expect((await commit(transaction)).operations).toBe(1_000);
  });

  test('8 MiB, and smaller writes still fit', async () => {
    const { db, docs, begin, commit } = await openDocs();
    const transaction = begin();
    const text = 'x'.repeat(2 * 1024 * 1024 - 100);
    for (let i = 0; i < 4; i++) await docs.insertWithKey(`k${i}`, { text }, { transaction });
    const refusal = await refusalOf(docs.insertWithKey('k4', { text }, { transaction }));
    expect(refusal.code).toBe('TX_LIMIT');
    await docs.insertWithKey('k5', { n: 1 }, { transaction });
    expect((await commit(transaction)).operations).toBe(5);
    expect(await docs.findByKey('k4')).toBeUndefined();
    expect((await docs.findByKey('k3'))?.data.text).toHaveLength(text.length);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('refused operations do not count', async () => {
    const { docs, begin, commit } = await openDocs();
    await docs.insert({ email: 'a@x' });
    const transaction = begin();
    for (let i = 0; i < 1_001; i++) {
      await refusalOf(docs.insert({ email: 'a@x' }, { transaction }));
    }
    await docs.insert({ email: 'b@x' }, { transaction });
    expect((await commit(transaction)).operations).toBe(1);
  });

  test('10 s without a call end it', async () => {
    const { db, docs, begin, commit } = await openDocs();
    const transaction = begin();
    scratch.clock.advance(9_999);
    await docs.insert({ n: 1 }, { transaction });
    scratch.clock.advance(9_999);
    await docs.findByKey('a', { transaction });
    scratch.clock.advance(10_000);
    const refusals = await Promise.all(
      [
        docs.findByKey('a', { transaction }),
        db.collection('later').findByKey('a', { transaction }),
        docs.insert({ n: 2 }, { transaction }),
        commit(transaction),
      ].map(refusalOf),
    );
    expect(refusals.map(({ code }) => code)).toEqual(Array(4).fill('TX_EXPIRED'));
    expect(() => db.transactions.use(transaction.id)).toThrow('TX_EXPIRED');
    expect(() => db.transactions.rollback(transaction.id)).toThrow('TX_EXPIRED');
    expect(db.core.state.seq).toBe(0);
    expect(db.core.snapshots.size).toBe(0);
  });

  test('60 s end it however busy it is, a shorter timeout earlier', async () => {
    const { db, docs, begin, commit } = await openDocs();
    const long = begin();
    const short = db.transactions.begin({ timeoutMs: 1_000 });
    const asking = db.transactions.begin({ timeoutMs: 1_000_000 });
    expect(long.expiresAt).toBe(scratch.clock.now() + 60_000);
    expect(short.expiresAt).toBe(scratch.clock.now() + 1_000);
    expect(asking.expiresAt).toBe(scratch.clock.now() + 60_000);
    for (let second = 0; second < 59; second++) {
      scratch.clock.advance(1_000);
      await docs.findByKey('a', { transaction: long });
    }
    expect((await refusalOf(commit(short))).code).toBe('TX_EXPIRED');
    scratch.clock.advance(1_000);
    expect((await refusalOf(commit(long))).code).toBe('TX_EXPIRED');
    expect(() => db.transactions.begin({ timeoutMs: -1 })).toThrow('BAD_REQUEST');
  });

  test('as many as a server may be asked for can be open at once', async () => {
    const { db, docs } = await openDocs();
    const open: Transaction[] = [];
    let refusal: unknown;
    try {
      for (let i = 0; i < 3_000; i++) {
        await docs.insert({ n: i });
        open.push(db.transactions.begin());
      }
    } catch (error) {
      refusal = error;
    }
    expect(open).toHaveLength(1_000);
    expect(refusal).toMatchObject({ code: 'TX_LIMIT' });
    const others = Array.from({ length: 2_000 }, () => db.core.snapshot());
    expect(new Set(others.map(({ seq }) => seq))).toEqual(new Set([1_001]));
    for (const view of others) view.done();
    for (const transaction of open) db.transactions.rollback(transaction.id);
    expect(db.transactions.size).toBe(0);
    expect((await docs.insert({})).rev).toBe(1);
  });
});

describe('the end', () => {
  test('a commit may be repeated and answers the same, also after a reopen', async () => {
    const { db, docs, begin, commit } = await openDocs();
    const transaction = begin();
    await docs.insert({ n: 1 }, { transaction });
    const [first, atOnce] = await Promise.all([commit(transaction), commit(transaction)]);
    scratch.clock.skip(5_000);
    await docs.insert({ n: 2 });
    expect(atOnce).toEqual(first);
    expect(await commit(transaction)).toEqual(first);
    const again = await scratch.reopen(db, { collections });
    expect(await again.transactions.commit(transaction.id)).toEqual(first);
    expect(again.core.state.seq).toBe(2);
    scratch.clock.skip(10 * 60_000);
    await again.sweepExpired();
    const late = again.transactions.commit(transaction.id);
    expect((await refusalOf(late)).code).toBe('TX_NOT_FOUND');
  });

  test('a commit that conflicted answers the same', async () => {
    const { docs, begin, commit } = await openDocs();
    await docs.insertWithKey('a', { n: 1 });
    const transaction = begin();
    await docs.updateByKey('a', { n: 2 }, { transaction });
    await docs.updateByKey('a', { n: 3 });
    const first = await refusalOf(commit(transaction));
    expect(first.code).toBe('TX_CONFLICT');
    expect(await refusalOf(commit(transaction))).toEqual(first);
  });

  test('an id that nobody gave is not found', async () => {
    const { db } = await openDocs();
    const id = '01BX5ZZKBKACTAV9WEVGEMMVRZ';
    expect((await refusalOf(db.transactions.commit(id))).code).toBe('TX_NOT_FOUND');
    expect(() => db.transactions.use(id)).toThrow('TX_NOT_FOUND');
    expect(() => db.transactions.rollback(id)).toThrow('TX_NOT_FOUND');
  });

  test('a rollback leaves nothing and ends it', async () => {
    const { db, docs, begin, commit } = await openDocs();
    const transaction = begin();
    await docs.insertWithKey('a', { n: 1 }, { transaction });
    db.transactions.rollback(transaction.id);
    expect(await docs.findByKey('a')).toBeUndefined();
    expect(db.core.state.seq).toBe(0);
    expect(db.core.snapshots.size).toBe(0);
    expect((await refusalOf(commit(transaction))).code).toBe('TX_CLOSED');
    expect(() => db.transactions.rollback(transaction.id)).toThrow('TX_CLOSED');
    expect((await refusalOf(docs.insert({}, { transaction }))).code).toBe('TX_CLOSED');
  });

  test('a committed transaction takes no more calls', async () => {
    const { db, docs, begin, commit } = await openDocs();
    const transaction = begin();
    await commit(transaction);
    expect((await refusalOf(docs.findByKey('a', { transaction }))).code).toBe('TX_CLOSED');
    expect(() => db.transactions.use(transaction.id)).toThrow('TX_CLOSED');
    expect(() => db.transactions.rollback(transaction.id)).toThrow('TX_CLOSED');
    expect(db.core.snapshots.size).toBe(0);
  });

  test('a read-only one refuses writes and commits without a conflict', async () => {
    const { db, docs, commit } = await openDocs();
    await docs.insertWithKey('a', { n: 1 });
    const transaction = db.transactions.begin({ readOnly: true });
    expect((await docs.findByKey('a', { transaction }))?.data.n).toBe(1);
    const refusals = await Promise.all(
      [
        docs.insert({}, { transaction }),
        docs.updateByKey('a', {}, { transaction }),
        docs.deleteByKey('a', { transaction }),
      ].map(refusalOf),
    );
    expect(refusals.map(({ code }) => code)).toEqual(Array(3).fill('TX_READ_ONLY'));
    readAll(db, transaction, 'docs');
    await docs.updateByKey('a', { n: 2 });
    expect((await docs.findByKey('a', { transaction }))?.data.n).toBe(1);
    expect(await commit(transaction)).toMatchObject({ operations: 0 });
  });

  test('a scan of its snapshot fails instead of showing another state', async () => {
    const { db, docs, begin } = await openDocs();
    for (let n = 0; n < 3; n++) await docs.insert({ n });
    const { id } = db.core.catalog.find('docs')!;
    const walks = (transaction: Transaction) => [
      transaction.view.scan(id, {}, () => true)[Symbol.iterator](),
      transaction.view.rows('records', {})[Symbol.iterator](),
    ];
    const [expiring, closing] = [begin(), begin()];
    const [expired, closed] = [walks(expiring), walks(closing)];
    for (const walk of [...expired, ...closed]) expect(walk.next().done).toBe(false);
    db.transactions.rollback(closing.id);
    for (const walk of closed) expect(() => walk.next()).toThrow('TX_CLOSED');
    scratch.clock.advance(10_000);
    for (const walk of expired) expect(() => walk.next()).toThrow('TX_EXPIRED');
    const view = db.core.snapshot();
    const walk = view.rows('records', {})[Symbol.iterator]();
    walk.next();
    await db.close();
    expect(() => walk.next()).toThrow('SHUTTING_DOWN');
    expect(() => view.record(id, '01BX5ZZKBKACTAV9WEVGEMMVRZ')).toThrow('SHUTTING_DOWN');
  });

  test('close gives back every snapshot, also of a commit under way', async () => {
    const { db, docs, begin, commit } = await openDocs();
    const idle = begin();
    const busy = begin();
    readAll(db, busy, 'others');
    await docs.insert({}, { transaction: busy });
    await Promise.all(Array.from({ length: 2_000 }, (_, n) => docs.insert({ n })));
    const committing = commit(busy).then(
      () => 'committed',
      (error: unknown) => (error as { code: string }).code,
    );
    await db.close();
    expect(['committed', 'SHUTTING_DOWN']).toContain(await committing);
    expect(() => db.core.commitRow(1)).toThrow('SHUTTING_DOWN');
    expect((await refusalOf(docs.findByKey('a', { transaction: idle }))).code).toBe(
      'SHUTTING_DOWN',
    );
  });
});
