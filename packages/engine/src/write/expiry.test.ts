import { describe, expect, test } from 'vitest';
import { problemsOf } from '../../test/consistency.test-support.js';
import { commitsOf, refusalOf, storyOf, useScratch } from '../../test/scratch.test-support.js';

interface Session {
  user: string;
}

const scratch = useScratch();
const collections = {
  sessions: { indexes: [{ fields: ['user'], unique: true }], defaultTtlMs: 5_000 },
};

async function openSessions() {
  const db = await scratch.open({ collections });
  return { db, sessions: db.collection<Session>('sessions') };
}

describe('the time a record has', () => {
  test('comes from its writer, or from the collection, or has no end', async () => {
    const { db, sessions } = await openSessions();
    const now = scratch.clock.now();
    const byDefault = await sessions.insert({ user: 'a' });
    const given = await sessions.insert({ user: 'b' }, { ttlMs: 100 });
    const endless = await sessions.insert({ user: 'c' }, { ttlMs: 0 });
    const elsewhere = await db.collection('others').insert({});
    expect(byDefault.expiresAt).toEqual(new Date(now + 5_000));
    expect(given.expiresAt).toEqual(new Date(now + 100));
    expect(endless.expiresAt).toBeUndefined();
    expect(elsewhere.expiresAt).toBeUndefined();
  });

  test('ends the counting of a record, also by an index and before it is removed', async () => {
    const { db, sessions } = await openSessions();
    await sessions.insert({ user: 'a' }, { ttlMs: 100 });
    await sessions.insert({ user: 'b' }, { ttlMs: 0 });
    const count = () => sessions.count({ field: 'user', op: 'in', value: ['a', 'b'] });
    expect(await count()).toBe(2);
    scratch.clock.skip(200);
    expect(await count()).toBe(1);
    await db.core.store.fold();
    expect(await count()).toBe(1);
    await db.sweepExpired();
    expect(await count()).toBe(1);
  });

  test('stays as it was when a change does not speak of it', async () => {
    const { db, sessions } = await openSessions();
    const { id, expiresAt } = await sessions.insertWithKey('s', { user: 'a' }, { ttlMs: 1_000 });
    scratch.clock.skip(400);
    expect((await sessions.update(id, { user: 'b' })).expiresAt).toEqual(expiresAt);
    expect((await sessions.mergeByKey('s', {})).expiresAt).toEqual(expiresAt);
    expect((await sessions.upsert('s', { user: 'c' })).record.expiresAt).toEqual(expiresAt);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('restarts, or ends, with a change that does', async () => {
    const { db, sessions } = await openSessions();
    const { id } = await sessions.insert({ user: 'a' }, { ttlMs: 1_000 });
    scratch.clock.skip(900);
    const later = new Date(scratch.clock.now() + 1_000);
    expect((await sessions.update(id, { user: 'a' }, { ttlMs: 1_000 })).expiresAt).toEqual(later);
    scratch.clock.skip(900);
    expect((await sessions.update(id, { user: 'a' }, { ttlMs: 0 })).expiresAt).toBeUndefined();
    scratch.clock.skip(900_000);
    await db.sweepExpired();
    expect(await sessions.findById(id)).toBeDefined();
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('of a fraction of a millisecond is rounded up', async () => {
    const { sessions } = await openSessions();
    const { expiresAt } = await sessions.insert({ user: 'a' }, { ttlMs: 0.25 });
    expect(expiresAt).toEqual(new Date(scratch.clock.now() + 1));
  });
});

describe('a record past its time', () => {
  test('is gone for every call before the sweeper comes', async () => {
    const { db, sessions } = await openSessions();
    const { id } = await sessions.insertWithKey('s', { user: 'a' }, { ttlMs: 1_000 });
    scratch.clock.skip(999);
    expect(await sessions.findByKey('s')).toBeDefined();
    scratch.clock.skip(1);
    expect(await sessions.findById(id)).toBeUndefined();
    expect(await sessions.findByKey('s')).toBeUndefined();
    const calls = [
      sessions.update(id, { user: 'b' }),
      sessions.merge(id, {}),
      sessions.updateIfRev({ id }, 1, { user: 'b' }),
      sessions.delete(id),
      sessions.updateByKey('s', { user: 'b' }),
      sessions.deleteByKey('s'),
    ];
    const codes = (await Promise.all(calls.map(refusalOf))).map(({ code }) => code);
    expect(codes.slice(0, 4)).toEqual(Array(4).fill('RECORD_NOT_FOUND'));
    expect(codes.slice(4)).toEqual(Array(2).fill('KEY_NOT_FOUND'));
    expect(db.core.state.seq).toBe(1);
  });

  test('does not hide from a lookup the records behind it', async () => {
    const { db, sessions } = await openSessions();
    const visits = db.collection('visits');
    await db.catalog.createIndex('visits', { fields: ['user'] });
    await db.indexesBuilt();
    const many = (count: number) => Array.from({ length: count }, () => ({ user: 'a' }));
    await visits.insertMany(many(300), { ttlMs: 100 });
    await visits.insertMany(many(5));
    await sessions.insert({ user: 'a' });
    scratch.clock.skip(200);
    const lookup = { from: 'visits', local: 'user', foreign: 'user', as: 'visits', limit: 3 };
    const { records } = await sessions.find({ lookup });
    expect(records[0]?.data).toEqual({ user: 'a', visits: many(3) });
  });

  test('gives its key and its unique value to the next one, in one commit', async () => {
    const { db, sessions } = await openSessions();
    const old = await sessions.insertWithKey('s', { user: 'a' }, { ttlMs: 1_000 });
    scratch.clock.skip(1_000);
    const fresh = await sessions.insertWithKey('s', { user: 'a' });
    expect(fresh.id).not.toBe(old.id);
    expect(fresh.rev).toBe(1);
    expect(storyOf(db, 2)).toEqual([['expire sessions/s rev 1', 'insert sessions/s rev 1']]);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('gives a unique value to a record that is changed', async () => {
    const { db, sessions } = await openSessions();
    await sessions.insert({ user: 'a' }, { ttlMs: 1_000 });
    const other = await sessions.insertWithKey('o', { user: 'b' }, { ttlMs: 0 });
    expect((await refusalOf(sessions.update(other.id, { user: 'a' }))).code).toBe(
      'UNIQUE_VIOLATION',
    );
    scratch.clock.skip(1_000);
    expect((await sessions.update(other.id, { user: 'a' })).rev).toBe(2);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('gives its id to an insert that asks for it', async () => {
    const { db, sessions } = await openSessions();
    const { id } = await sessions.insertWithKey('s', { user: 'a' }, { ttlMs: 1_000 });
    scratch.clock.skip(1_000);
    const fresh = await sessions.insert({ user: 'b' }, { id });
    expect(fresh).toMatchObject({ id, key: '', rev: 1 });
    expect(await sessions.findByKey('s')).toBeUndefined();
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('counts as not there for expected_rev 0, upsert and updateIfRev', async () => {
    const { db, sessions } = await openSessions();
    await sessions.insertWithKey('s', { user: 'a' }, { ttlMs: 1_000 });
    scratch.clock.skip(1_000);
    expect((await sessions.updateIfRev({ key: 's' }, 0, { user: 'a' })).rev).toBe(1);
    await sessions.insertWithKey('u', { user: 'b' }, { ttlMs: 1_000 });
    scratch.clock.skip(1_000);
    expect((await sessions.upsert('u', { user: 'b' })).created).toBe(true);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('gives way inside a transaction: key, unique value and id', async () => {
    const { db, sessions } = await openSessions();
    const old = await sessions.insertWithKey('s', { user: 'a' }, { ttlMs: 1_000 });
    const other = await sessions.insertWithKey('t', { user: 'b' }, { ttlMs: 1_000 });
    scratch.clock.skip(1_000);
    const transaction = db.transactions.begin();
    const inside = { transaction, ttlMs: 0 };
    expect(await sessions.findByKey('s', { transaction })).toBeUndefined();
    await sessions.insertWithKey('s', { user: 'b' }, inside);
    await sessions.insert({ user: 'a' }, { ...inside, id: other.id });
    await db.transactions.commit(transaction.id);
    expect((await sessions.findByKey('s'))?.data.user).toBe('b');
    expect(await sessions.findById(other.id)).toMatchObject({ key: '', rev: 1 });
    expect(await sessions.findByKey('t')).toBeUndefined();
    await db.sweepExpired();
    expect(await sessions.findById(old.id)).toBeUndefined();
    expect((await sessions.findByKey('s'))?.data.user).toBe('b');
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('stays past it when the clock is set back after its key was given away', async () => {
    const { db, sessions } = await openSessions();
    await sessions.insertWithKey('s', { user: 'a' }, { ttlMs: 1_000 });
    scratch.clock.skip(1_000);
    const transaction = db.transactions.begin();
    await sessions.insertWithKey('s', { user: 'b' }, { transaction, ttlMs: 0 });
    await db.transactions.commit(transaction.id);
    scratch.clock.setBack(10_000);
    expect((await sessions.findByKey('s'))?.data.user).toBe('b');
    expect(problemsOf(db.core)).toEqual([]);
  });
});

describe('the sweeper', () => {
  test('comes by itself within a second and leaves an EXPIRE change', async () => {
    const { db, sessions } = await openSessions();
    const { id } = await sessions.insertWithKey('s', { user: 'a' }, { ttlMs: 1_500 });
    scratch.clock.advance(1_000);
    await db.core.writer.drained();
    expect(db.core.state.seq).toBe(1);
    await new Promise((resolve) => setImmediate(resolve));
    scratch.clock.advance(1_000);
    await db.core.writer.drained();
    expect(db.core.state.seq).toBe(2);
    const [commit] = commitsOf(db, 2);
    expect(commit?.changes).toMatchObject([{ op: 'expire', id }]);
    expect(commit?.changes[0]?.after).toBeUndefined();
    expect(commit?.changes[0]?.before?.data).toEqual({ user: 'a' });
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('takes many in commits of a bounded size', async () => {
    const { db } = await openSessions();
    const many = db.collection('many');
    await Promise.all(Array.from({ length: 1_201 }, (_, i) => many.insert({ i }, { ttlMs: 10 })));
    scratch.clock.skip(10);
    await db.sweepExpired();
    const sizes = commitsOf(db, 1_202).map(({ changes }) => changes.length);
    expect(sizes).toEqual([500, 500, 201]);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('leaves alone what was given more time or is gone', async () => {
    const { db, sessions } = await openSessions();
    const longer = await sessions.insert({ user: 'a' }, { ttlMs: 1_000 });
    const gone = await sessions.insert({ user: 'b' }, { ttlMs: 1_000 });
    await sessions.update(longer.id, { user: 'a' }, { ttlMs: 9_000 });
    await sessions.delete(gone.id);
    scratch.clock.skip(1_000);
    await db.sweepExpired();
    expect(await sessions.findById(longer.id)).toBeDefined();
    expect(db.core.state.seq).toBe(4);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('does its work after a reopen', async () => {
    const { db, sessions } = await openSessions();
    const { id } = await sessions.insert({ user: 'a' }, { ttlMs: 1_000 });
    await db.close();
    scratch.clock.skip(60_000);
    const again = await scratch.open({ collections }, db.directory);
    expect(await again.collection('sessions').findById(id)).toBeUndefined();
    await again.sweepExpired();
    expect(storyOf(again, 2)).toEqual([['expire sessions/ rev 1']]);
    expect(problemsOf(again.core)).toEqual([]);
  });

  test('stops with the database', async () => {
    const { db } = await openSessions();
    await db.close();
    expect(scratch.clock.timers).toBe(0);
  });
});

test.each([-1, NaN, Infinity])('a default ttl of %j is refused at open', async (defaultTtlMs) => {
  const opening = scratch.open({ collections: { sessions: { defaultTtlMs } } });
  await expect(opening).rejects.toThrow('default_ttl');
});
