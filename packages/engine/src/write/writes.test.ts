import { dbReasons } from '@millrace/contract/db-reasons';
import type { Refusal } from '@millrace/kit/errors';
import { isUlid } from '@millrace/kit/ulid';
import { describe, expect, test } from 'vitest';
import { problemsOf } from '../../test/consistency.test-support.js';
import { refusalOf, storyOf, useScratch } from '../../test/scratch.test-support.js';

interface Person {
  name: string;
  age?: number | null;
  email?: string;
  tags?: string[];
  address?: { city?: string; street?: string };
}

const scratch = useScratch();
const uniqueEmail = { people: { indexes: [{ fields: ['email'], unique: true }] } };

async function openPeople() {
  const db = await scratch.open({ collections: uniqueEmail });
  return { db, people: db.collection<Person>('people') };
}

describe('insert', () => {
  test('makes an id, the first revision and both times', async () => {
    const { db, people } = await openPeople();
    const now = scratch.clock.now();
    const ada = await people.insert({ name: 'Ada' });
    expect(isUlid(ada.id)).toBe(true);
    expect(ada).toEqual({
      id: ada.id,
      key: '',
      rev: 1,
      seq: 1,
      data: { name: 'Ada' },
      createdAt: new Date(now),
      updatedAt: new Date(now),
    });
    expect(await people.findById(ada.id)).toEqual(ada);
    expect(storyOf(db)).toEqual([['insert people/ rev 1']]);
  });

  test('makes ids that grow, also within one millisecond', async () => {
    const { people } = await openPeople();
    const made = await Promise.all(
      Array.from({ length: 500 }, (_, i) => people.insert({ name: `n${i}` })),
    );
    const ids = made.map(({ id }) => id);
    expect([...ids].sort()).toEqual(ids);
    expect(new Set(made.map(({ seq }) => seq)).size).toBe(500);
  });

  test('takes an id of the caller in either case and keeps it in capitals', async () => {
    const { people } = await openPeople();
    const id = '01BX5ZZKBKACTAV9WEVGEMMVRZ';
    expect((await people.insert({ name: 'Ada' }, { id: id.toLowerCase() })).id).toBe(id);
    expect((await people.findById(id.toLowerCase()))?.data.name).toBe('Ada');
    const refusal = await refusalOf(people.insert({ name: 'Bob' }, { id }));
    expect(refusal.code).toBe('DUPLICATE_ID');
  });

  test.each(['', 'x', '81BX5ZZKBKACTAV9WEVGEMMVRZ', '01BX5ZZKBKACTAV9WEVGEMMVR', 7 as never])(
    'refuses the id %j',
    async (id) => {
      const { people } = await openPeople();
      expect((await refusalOf(people.insert({ name: 'Ada' }, { id }))).code).toBe('BAD_ID');
    },
  );

  test('refuses a key that is taken and leaves no trace', async () => {
    const { db, people } = await openPeople();
    const bob = await people.insertWithKey('bob', { name: 'Bob' });
    const refusal = await refusalOf(people.insertWithKey('bob', { name: 'Bobby' }));
    expect(refusal.code).toBe('DUPLICATE_KEY');
    expect(await people.findByKey('bob')).toEqual(bob);
    expect(db.core.state.seq).toBe(1);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('lets one of many concurrent inserts have the key', async () => {
    const { people } = await openPeople();
    const tries = await Promise.allSettled(
      Array.from({ length: 50 }, (_, i) => people.insertWithKey('one', { name: `n${i}` })),
    );
    expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const codes = tries.flatMap((each) =>
      each.status === 'rejected' ? [(each.reason as Refusal).code] : [],
    );
    expect(new Set(codes)).toEqual(new Set(['DUPLICATE_KEY']));
  });

  test('keeps keys of different collections apart', async () => {
    const { db, people } = await openPeople();
    await people.insertWithKey('bob', { name: 'Bob' });
    const cat = await db.collection('cats').insertWithKey('bob', { paws: 4 });
    expect((await db.collection('cats').findByKey('bob'))?.id).toBe(cat.id);
    expect((await people.findByKey('bob'))?.id).not.toBe(cat.id);
    expect(await people.findById(cat.id)).toBeUndefined();
  });

  test('refuses a value that a unique index already has', async () => {
    const { db, people } = await openPeople();
    await people.insert({ name: 'Ada', email: 'a@x' });
    const refusal = await refusalOf(people.insert({ name: 'Eve', email: 'a@x' }));
    expect(refusal.code).toBe('UNIQUE_VIOLATION');
    expect(db.core.state.seq).toBe(1);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('lets many records lack a unique value', async () => {
    const { people } = await openPeople();
    await people.insert({ name: 'Ada' });
    await expect(people.insert({ name: 'Eve' })).resolves.toBeDefined();
  });

  test('is not made to wait for a collection that others make at the same time', async () => {
    const db = await scratch.open();
    const made = await Promise.all(
      Array.from({ length: 40 }, (_, i) => db.collection(`c${i % 4}`).insert({ i })),
    );
    expect(db.catalog.collections().map(({ name }) => name)).toEqual(['c0', 'c1', 'c2', 'c3']);
    expect(new Set(made.map(({ id }) => id)).size).toBe(40);
    const again = await scratch.reopen(db);
    expect((await again.collection('c3').findById(made[3]!.id))?.data).toEqual({ i: 3 });
    expect(problemsOf(again.core)).toEqual([]);
  });
});

describe('update and merge', () => {
  test('replace the document, raise the revision and keep the rest', async () => {
    const { db, people } = await openPeople();
    const before = await people.insertWithKey('bob', { name: 'Bob', age: 4 });
    scratch.clock.advance(5);
    const after = await people.update(before.id, { name: 'Robert' });
    expect(after).toEqual({
      ...before,
      rev: 2,
      seq: 2,
      data: { name: 'Robert' },
      updatedAt: new Date(before.updatedAt.getTime() + 5),
    });
    expect(await people.findByKey('bob')).toEqual(after);
    const byKey = await people.updateByKey('bob', { name: 'Rob' });
    expect(byKey).toMatchObject({ id: before.id, rev: 3, seq: 3 });
    expect(storyOf(db)).toEqual([
      ['insert people/bob rev 1'],
      ['update people/bob rev 2'],
      ['update people/bob rev 3'],
    ]);
  });

  test('merge by RFC 7396: null removes, objects merge, the rest replaces', async () => {
    const { people } = await openPeople();
    const { id } = await people.insertWithKey('bob', {
      name: 'Bob',
      age: 4,
      tags: ['a', 'b'],
      address: { city: 'Bern', street: 'Main' },
    });
    const merged = await people.merge(id, {
      age: null,
      tags: ['c'],
      address: { street: null, city: 'Ulm' },
    });
    expect(merged.data).toEqual({ name: 'Bob', tags: ['c'], address: { city: 'Ulm' } });
    const byKey = await people.mergeByKey('bob', { address: { street: 'Side' } });
    expect(byKey.data.address).toEqual({ city: 'Ulm', street: 'Side' });
    expect(byKey.rev).toBe(3);
  });

  test('concurrent merges all count', async () => {
    const { db } = await openPeople();
    const counters = db.collection<Record<string, number>>('counters');
    const { id } = await counters.insert({ start: 0 });
    await Promise.all(Array.from({ length: 100 }, (_, i) => counters.merge(id, { [`f${i}`]: i })));
    const record = await counters.findById(id);
    expect(Object.keys(record!.data)).toHaveLength(101);
    expect(record!.rev).toBe(101);
  });

  test('refuse what is not there', async () => {
    const { people } = await openPeople();
    const id = '01BX5ZZKBKACTAV9WEVGEMMVRZ';
    const byId = [people.update(id, { name: 'x' }), people.merge('nonsense', { age: 1 })];
    for (const { code } of await Promise.all(byId.map(refusalOf))) {
      expect(code).toBe('RECORD_NOT_FOUND');
    }
    const byKey = [people.updateByKey('no', { name: 'x' }), people.mergeByKey('no', {})];
    for (const { code } of await Promise.all(byKey.map(refusalOf))) {
      expect(code).toBe('KEY_NOT_FOUND');
    }
  });

  test('refuse a unique value of another record, and may keep their own', async () => {
    const { db, people } = await openPeople();
    await people.insert({ name: 'Ada', email: 'a@x' });
    const bob = await people.insert({ name: 'Bob', email: 'b@x' });
    expect((await refusalOf(people.merge(bob.id, { email: 'a@x' }))).code).toBe('UNIQUE_VIOLATION');
    expect((await people.findById(bob.id))?.rev).toBe(1);
    await people.merge(bob.id, { age: 5 });
    await people.merge(bob.id, { email: 'c@x' });
    await expect(people.insert({ name: 'Eve', email: 'b@x' })).resolves.toBeDefined();
    expect(problemsOf(db.core)).toEqual([]);
  });
});

describe('upsert', () => {
  test('inserts, then replaces, and says which', async () => {
    const { people } = await openPeople();
    const first = await people.upsert('bob', { name: 'Bob', age: 4 });
    expect(first).toMatchObject({ created: true, record: { rev: 1, key: 'bob' } });
    const second = await people.upsert('bob', { name: 'Rob' });
    expect(second).toMatchObject({ created: false, record: { rev: 2, data: { name: 'Rob' } } });
    expect(second.record.data).toEqual({ name: 'Rob' });
    expect(second.record.id).toBe(first.record.id);
  });

  test('merges on request, and of a patch without a record keeps what is not null', async () => {
    const { people } = await openPeople();
    const first = await people.upsertMerge('bob', { name: 'Bob', age: null });
    expect(first.created).toBe(true);
    expect(first.record.data).toEqual({ name: 'Bob' });
    const second = await people.upsertMerge('bob', { age: 4 });
    expect(second.created).toBe(false);
    expect(second.record.data).toEqual({ name: 'Bob', age: 4 });
  });

  test('of many at once makes one record', async () => {
    const { people } = await openPeople();
    const all = await Promise.all(
      Array.from({ length: 30 }, (_, i) => people.upsert('bob', { name: `n${i}` })),
    );
    expect(all.filter(({ created }) => created)).toHaveLength(1);
    expect((await people.findByKey('bob'))?.rev).toBe(30);
  });
});

describe('updateIfRev', () => {
  test('changes the record only at the revision that was seen', async () => {
    const { people } = await openPeople();
    const bob = await people.insertWithKey('bob', { name: 'Bob' });
    expect((await people.updateIfRev({ key: 'bob' }, 1, { name: 'Rob' })).rev).toBe(2);
    const refusal = await refusalOf(people.updateIfRev({ id: bob.id }, 1, { name: 'Late' }));
    expect(refusal.code).toBe('REV_MISMATCH');
    expect(refusal.extra.members).toEqual({ metadata: { current_rev: '2' } });
    expect((await people.updateIfRev({ id: bob.id }, 2, { name: 'Robert' })).rev).toBe(3);
  });

  test('lets one of many win', async () => {
    const { people } = await openPeople();
    await people.insertWithKey('bob', { name: 'Bob' });
    const tries = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) => people.updateIfRev({ key: 'bob' }, 1, { name: `${i}` })),
    );
    expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  test('with 0 inserts, and refuses when the key is there', async () => {
    const { people } = await openPeople();
    expect((await people.updateIfRev({ key: 'bob' }, 0, { name: 'Bob' })).rev).toBe(1);
    const refusal = await refusalOf(people.updateIfRev({ key: 'bob' }, 0, { name: 'Bob' }));
    expect(refusal.code).toBe('REV_MISMATCH');
    expect(refusal.extra.members).toEqual({ metadata: { current_rev: '1' } });
  });

  test('with 0 cannot go by an id', async () => {
    const { people } = await openPeople();
    const call = people.updateIfRev({ id: '01BX5ZZKBKACTAV9WEVGEMMVRZ' }, 0, { name: 'x' });
    expect((await refusalOf(call)).code).toBe('BAD_REQUEST');
  });

  test('refuses what is not there', async () => {
    const { people } = await openPeople();
    const byKey = people.updateIfRev({ key: 'no' }, 3, { name: 'x' });
    expect((await refusalOf(byKey)).code).toBe('KEY_NOT_FOUND');
    const byId = people.updateIfRev({ id: '01BX5ZZKBKACTAV9WEVGEMMVRZ' }, 3, { name: 'x' });
    expect((await refusalOf(byId)).code).toBe('RECORD_NOT_FOUND');
  });

  test('in merge mode with 0 keeps what is not null', async () => {
    const { db } = await openPeople();
    const patch = { name: 'Bob', age: null };
    const { record } = await db.writes.updateIfRev('people', { key: 'bob' }, 0, patch, {
      mode: 'merge',
    });
    expect(record?.data).toEqual({ name: 'Bob' });
  });
});

describe('delete', () => {
  test('removes the record and returns it as it was', async () => {
    const { db, people } = await openPeople();
    const bob = await people.insertWithKey('bob', { name: 'Bob', email: 'b@x' });
    expect(await people.delete(bob.id)).toEqual({ ...bob, deletedSeq: bob.seq + 1 });
    expect(await people.findById(bob.id)).toBeUndefined();
    expect(await people.findByKey('bob')).toBeUndefined();
    expect((await refusalOf(people.delete(bob.id))).code).toBe('RECORD_NOT_FOUND');
    expect((await refusalOf(people.deleteByKey('bob'))).code).toBe('KEY_NOT_FOUND');
    expect(storyOf(db, 2)).toEqual([['delete people/bob rev 1']]);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('frees the key and the unique value', async () => {
    const { db, people } = await openPeople();
    const first = await people.insertWithKey('bob', { name: 'Bob', email: 'b@x' });
    await people.deleteByKey('bob');
    const second = await people.insertWithKey('bob', { name: 'Bob', email: 'b@x' });
    expect(second.id).not.toBe(first.id);
    expect(second.rev).toBe(1);
    expect(problemsOf(db.core)).toEqual([]);
  });
});

describe('what the caller holds', () => {
  test('may be changed after the call without a trace', async () => {
    const { people } = await openPeople();
    const given: Person = { name: 'Ada', tags: ['a'], address: { city: 'Bern' } };
    const writing = people.insert(given);
    given.name = 'Eve';
    given.tags!.push('b');
    given.address!.city = 'Ulm';
    const { id } = await writing;
    const expected = { name: 'Ada', tags: ['a'], address: { city: 'Bern' } };
    expect((await people.findById(id))?.data).toEqual(expected);
  });

  test('of an answer may be changed without a trace', async () => {
    const { people } = await openPeople();
    const written = await people.insertWithKey('ada', { name: 'Ada', tags: ['a'] });
    written.data.tags!.push('b');
    const read = await people.findByKey('ada');
    read!.data.tags!.push('c');
    expect((await people.findByKey('ada'))?.data.tags).toEqual(['a']);
    expect((await people.mergeByKey('ada', { age: 1 })).data.tags).toEqual(['a']);
  });

  test('of a transaction may be changed without a trace', async () => {
    const { db, people } = await openPeople();
    const tx = db.transactions.begin();
    const inside = { transaction: tx };
    const written = await people.insertWithKey('ada', { name: 'Ada', tags: ['a'] }, inside);
    written.data.tags!.push('b');
    const read = await people.findByKey('ada', inside);
    read!.data.tags!.push('c');
    expect((await people.findByKey('ada', inside))?.data.tags).toEqual(['a']);
    await people.mergeByKey('ada', { age: 1 }, inside);
    await db.transactions.commit(tx.id);
    expect((await people.findByKey('ada'))?.data).toEqual({ name: 'Ada', tags: ['a'], age: 1 });
  });
});

describe('refusals', () => {
  test.each(['1st', '', '_x', 'a b', 'a/b', 'ä', 'a'.repeat(65), '__proto__', 'a\n'])(
    '%j cannot name a collection',
    async (name) => {
      const { db } = await openPeople();
      expect(() => db.collection(name)).toThrow('BAD_COLLECTION');
      expect((await refusalOf(db.writes.insert(name, {}))).code).toBe('BAD_COLLECTION');
    },
  );

  test.each(['a', 'Z9', 'a.b-c_d', 'a'.repeat(64), 'constructor'])(
    '%j can name a collection',
    async (name) => {
      const { db } = await openPeople();
      await expect(db.collection(name).insert({ a: 1 })).resolves.toBeDefined();
    },
  );

  test.each([
    '',
    '\0',
    'a\0b',
    'x'.repeat(1025),
    'é'.repeat(513),
    '\ud800',
    7 as never,
    null as never,
  ])('%j is no key for any call', async (key) => {
    const { people } = await openPeople();
    const calls = [
      people.insertWithKey(key, { name: 'x' }),
      people.findByKey(key),
      people.updateByKey(key, { name: 'x' }),
      people.mergeByKey(key, {}),
      people.upsert(key, { name: 'x' }),
      people.updateIfRev({ key }, 0, { name: 'x' }),
      people.updateIfRev({ key }, 1, { name: 'x' }),
      people.deleteByKey(key),
    ];
    const refusals = await Promise.all(calls.map(refusalOf));
    for (const { code } of refusals) expect(code).toBe('BAD_KEY');
  });

  test.each(['x'.repeat(1024), 'é'.repeat(512), 'a/b:c', ' ', '\u{1F600}', '__proto__'])(
    '%j is a key',
    async (key) => {
      const { db, people } = await openPeople();
      const made = await people.insertWithKey(key, { name: 'x' });
      expect((await people.findByKey(key))?.id).toBe(made.id);
      expect((await people.findById(made.id))?.key).toBe(key);
      expect(problemsOf(db.core)).toEqual([]);
    },
  );

  test.each([-1, NaN, Infinity, 1e300, 2 ** 60, '5' as never])(
    'a ttl of %j ms is refused',
    async (ttlMs) => {
      const { people } = await openPeople();
      expect((await refusalOf(people.insert({ name: 'x' }, { ttlMs }))).code).toBe('BAD_REQUEST');
    },
  );

  test('speak only of what a reader can see', async () => {
    const { people } = await openPeople();
    for (let i = 0; i < 20; i++) {
      const writing = people.insertWithKey(`k${i}`, { name: 'x' });
      expect((await refusalOf(people.insertWithKey(`k${i}`, { name: 'y' }))).code).toBe(
        'DUPLICATE_KEY',
      );
      expect(await people.findByKey(`k${i}`)).toBeDefined();
      await writing;
    }
  });

  test('carry the metadata that the contract promises', async () => {
    const { db, people } = await openPeople();
    const ada = await people.insertWithKey('ada', { name: 'Ada', email: 'a@x' });
    const call = { requestId: 'r1' };
    await people.insert({ name: 'x' }, call);
    const refusals = await Promise.all(
      [
        people.insertWithKey('ada', { name: 'Ada' }),
        people.insert({ name: 'Ada' }, { id: ada.id }),
        people.insert({ name: 'Ada', email: 'a@x' }),
        people.updateByKey('no', { name: 'x' }),
        people.delete('01BX5ZZKBKACTAV9WEVGEMMVRZ'),
        people.updateIfRev({ key: 'ada' }, 7, { name: 'x' }),
        people.insert({ name: 'x'.repeat(2 ** 21) }),
        people.insert({ name: 'y' }, call),
        db.writes.insert('1st', {}),
        db.transactions.commit('01BX5ZZKBKACTAV9WEVGEMMVRZ'),
      ].map(refusalOf),
    );
    expect(refusals.map(({ code }) => code)).toEqual([
      'DUPLICATE_KEY',
      'DUPLICATE_ID',
      'UNIQUE_VIOLATION',
      'KEY_NOT_FOUND',
      'RECORD_NOT_FOUND',
      'REV_MISMATCH',
      'RECORD_TOO_LARGE',
      'REQUEST_ID_REUSED',
      'BAD_COLLECTION',
      'TX_NOT_FOUND',
    ]);
    for (const { code, extra } of refusals) {
      const { metadata = [] } = dbReasons[code] as { metadata?: readonly string[] };
      expect({ code, has: Object.keys((extra.members?.['metadata'] ?? {}) as object) }).toEqual({
        code,
        has: expect.arrayContaining([...metadata]) as string[],
      });
    }
  });
});

describe('after close', () => {
  test('every call is refused', async () => {
    const { db, people } = await openPeople();
    const ada = await people.insert({ name: 'Ada' });
    const tx = db.transactions.begin();
    await db.close();
    await db.close();
    expect((await refusalOf(people.insert({ name: 'x' }))).code).toBe('SHUTTING_DOWN');
    expect((await refusalOf(people.findById(ada.id))).code).toBe('SHUTTING_DOWN');
    expect((await refusalOf(people.findByKey('x'))).code).toBe('SHUTTING_DOWN');
    expect(() => db.transactions.begin()).toThrow('SHUTTING_DOWN');
    expect((await refusalOf(db.transactions.commit(ada.id))).code).toBe('SHUTTING_DOWN');
    expect((await refusalOf(people.findById(ada.id, { transaction: tx }))).code).toMatch(
      /TX_CLOSED|SHUTTING_DOWN/,
    );
  });

  test('writes that were under way are on disk', async () => {
    const { db, people } = await openPeople();
    const writing = Array.from({ length: 200 }, (_, i) =>
      people.insertWithKey(`k${i}`, { name: 'n' }),
    );
    const closing = db.close();
    const ended = await Promise.allSettled(writing);
    await closing;
    const again = await scratch.open({ collections: uniqueEmail }, db.directory);
    for (const [i, one] of ended.entries()) {
      const found = await again.collection('people').findByKey(`k${i}`);
      expect(found !== undefined).toBe(one.status === 'fulfilled');
    }
    expect(ended.filter(({ status }) => status === 'fulfilled').length).toBeGreaterThan(0);
    expect(problemsOf(again.core)).toEqual([]);
  });
});
