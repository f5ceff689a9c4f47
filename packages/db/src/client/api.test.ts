import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Refusal } from '@millrace/kit/errors';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import type { CollectionApi, DatabaseApi } from './api.js';
import { useServers } from './server.test-support.js';
import { connect, open } from '../index.js';

interface Person {
  name: string;
  age: number;
  city?: string;
}

const servers = useServers();
const directories: string[] = [];
const databases: DatabaseApi[] = [];

afterEach(async () => {
  for (const database of databases.splice(0)) await database.close();
  for (const made of directories.splice(0)) rmSync(made, { recursive: true, force: true });
});

/** The two implementations of the API, which must behave the same. */
const ways: [string, () => Promise<DatabaseApi>][] = [
  [
    'open',
    async () => {
      const directory = mkdtempSync(join(tmpdir(), 'millrace-api-'));
      directories.push(directory);
      return open(directory, {
        collections: {
          people: { indexes: [{ fields: ['age'] }] },
          users: { indexes: [{ fields: ['email'], unique: true, sparse: true }] },
        },
      });
    },
  ],
  [
    'connect',
    async () => {
      const collections =
        '{people: {indexes: [{fields: [age]}]}, ' +
        'users: {indexes: [{fields: [email], unique: true, sparse: true}]}}';
      const { url } = await servers.serve({ collections });
      return connect(url);
    },
  ],
];

test('open: durability full is an alias of strict', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'millrace-api-'));
  directories.push(directory);
  const db = await open(directory, { durability: 'full' });
  databases.push(db);
  expect(db.core.options.durability).toBe('strict');
});

describe.each(ways)('by %s', (_, make) => {
  async function start(): Promise<{ db: DatabaseApi; people: CollectionApi<Person> }> {
    const db = await make();
    databases.push(db);
    return { db, people: db.collection<Person>('people') };
  }

  const codeOf = (call: Promise<unknown>) =>
    call.then(
      () => 'none',
      (error: unknown) => (error instanceof Refusal ? error.code : String(error)),
    );

  test('records: same fields and refusals', async () => {
    const { people, db } = await start();
    const ada = await people.insertWithKey('ada', { name: 'Ada', age: 36 });
    expect(Object.keys(ada).toSorted()).toEqual(
      ['createdAt', 'data', 'id', 'key', 'rev', 'seq', 'updatedAt'].toSorted(),
    );
    expect(await people.findByKey('ada')).toEqual(ada);
    expect(await people.findById('nobody')).toBeUndefined();
    const part = { ...ada, data: { age: 36 } };
    expect(await people.findByKey('ada', { fields: ['age'] })).toEqual(part);
    expect(await people.findById(ada.id, { fields: ['age'] })).toEqual(part);
    expect(await codeOf(people.findByKey('ada', { fields: ['a..b' as never] }))).toBe(
      'BAD_REQUEST',
    );
    expect(await codeOf(people.insertWithKey('ada', { name: 'A', age: 1 }))).toBe('DUPLICATE_KEY');
    const other = ada.id.slice(0, -1) + (ada.id.endsWith('0') ? '1' : '0');
    expect(await codeOf(people.update(other, { name: 'A', age: 1 }))).toBe('RECORD_NOT_FOUND');
    expect(await codeOf(people.deleteByKey('bob'))).toBe('KEY_NOT_FOUND');
    expect(await codeOf(people.findByKey(''))).toBe('BAD_KEY');
    expect(await codeOf(people.insert({ name: 'x', age: NaN }))).toBe('BAD_DATA');
    expect(await codeOf(people.insert(undefined as never))).toBe('BAD_DATA');
    expect(await codeOf(people.insert({ name: 'x', age: 1 }, { id: 'short' }))).toBe('BAD_ID');
    expect(await codeOf(people.updateIfRev({ key: 'ada' }, 9, { name: 'x', age: 1 }))).toBe(
      'REV_MISMATCH',
    );
    expect(() => db.collection('9lives')).toThrow('cannot name a collection');
    const once = { requestId: 'once' };
    const first = await people.insert({ name: 'E', age: 1 }, once);
    expect((await people.insert({ name: 'E', age: 1 }, once)).id).toBe(first.id);
    expect(await codeOf(people.insert({ name: 'F', age: 1 }, once))).toBe('REQUEST_ID_REUSED');
    expect(await people.delete(first.id)).toEqual({ ...first, deletedSeq: first.seq + 1 });
    expect(await people.deleteByKey('ada')).toEqual({ ...ada, deletedSeq: first.seq + 2 });
  });

  test('queries: same input and results', async () => {
    const { people } = await start();
    for (const [i, name] of ['Ada', 'Bob', 'Cyd', 'Dot'].entries()) {
      await people.insert({ name, age: 20 + i, ...(i % 2 ? { city: 'Bern' } : {}) });
    }
    const page = await people.find({
      orderBy: [{ field: 'age', desc: true }],
      limit: 3,
      explain: true,
    });
    expect(page.records.map(({ data }) => data.name)).toEqual(['Dot', 'Cyd', 'Bob']);
    expect(page).toMatchObject({ readSeq: 4, plan: { index: 'age', rowsReturned: 3 } });
    const rest = await people.find({
      orderBy: [{ field: 'age', desc: true }],
      cursor: page.nextCursor,
    });
    expect([rest.records.length, rest.nextCursor, rest.plan]).toEqual([1, '', undefined]);
    expect(await people.count({ field: 'city', op: 'exists' })).toBe(2);
    expect(await codeOf(people.find({ filter: { field: 'a', op: 'nope' as never } }))).toBe(
      'BAD_FILTER',
    );
    expect(await codeOf(people.find({ fitler: 1 } as never))).toBe('BAD_REQUEST');
    expect(
      await codeOf(
        people.find({ filter: { field: 'name', op: 'eq', value: 'x' }, allowFullScan: false }),
      ),
    ).toBe('INDEX_REQUIRED');
    const { groups, plan, readSeq } = await people.aggregate({
      groupBy: ['city'],
      orderBy: [{ field: 'city' }],
    });
    expect(groups).toEqual([
      { key: { city: null }, count: 2, values: {} },
      { key: { city: 'Bern' }, count: 2, values: {} },
    ]);
    expect([plan.rowsScanned, readSeq]).toEqual([4, 4]);
  });

  test('queries: object filters, order and fields', async () => {
    const { people } = await start();
    for (const [i, name] of ['Ada', 'Bob', 'Cyd', 'Dot'].entries()) {
      await people.insert({ name, age: 20 + i, ...(i % 2 ? { city: 'Bern' } : {}) });
    }
    const { records } = await people.find({
      filter: { age: { gt: 20 }, or: [{ city: 'Bern' }, { name: { prefix: 'C' } }] },
      orderBy: { age: 'desc' },
      fields: ['name'],
    });
    expect(records.map(({ data }) => data)).toEqual(
      ['Dot', 'Cyd', 'Bob'].map((name) => ({ name })),
    );
    expect(await people.count({ city: { exists: false } })).toBe(2);
    expect((await people.findOne({ filter: { name: 'Dot' }, fields: ['age'] }))?.data).toEqual({
      age: 23,
    });
    const names = [];
    for await (const { data } of people.stream({ filter: { not: { city: 'Bern' } } })) {
      names.push(data.name);
    }
    expect(names).toEqual(['Ada', 'Cyd']);
    const { groups } = await people.aggregate({
      filter: { age: { gte: 21 } },
      groupBy: ['city'],
      having: { city: 'Bern' },
    });
    expect(groups).toEqual([{ key: { city: 'Bern' }, count: 2, values: {} }]);
    expect(await codeOf(people.count({ age: undefined } as never))).toBe('BAD_FILTER');
    expect(await codeOf(people.find({ filter: { age: { gtt: 1 } } as never }))).toBe('BAD_FILTER');
    const live = people.live({ filter: { city: 'Bern' }, orderBy: { age: 'desc' } });
    expect((await live.next()).value).toMatchObject({
      records: [{ data: { name: 'Dot' } }, { data: { name: 'Bob' } }],
    });
    await live.return!();
  });

  test('transaction: tx.collection belongs to the transaction', async () => {
    const { db, people } = await start();
    const boom = db.transaction(async (tx) => {
      await tx.collection(people).insertWithKey('a', { name: 'A', age: 1 });
      await tx.collection<Person>('people').insertWithKey('b', { name: 'B', age: 2 });
      expect(await tx.collection(people).count({ age: { gt: 0 } })).toBe(2);
      expect(await tx.collection(people).count({ name: 'A' })).toBe(1);
      throw new Error('boom');
    });
    await expect(boom).rejects.toThrow('boom');
    expect(await people.count()).toBe(0);
    await db.transaction((tx) => tx.collection(people).upsert('a', { name: 'A', age: 1 }));
    const begun = await db.begin();
    await begun.collection(people).mergeByKey('a', { age: 2 });
    expect((await people.findByKey('a'))?.data.age).toBe(1);
    await begun.commit();
    expect((await people.findByKey('a'))?.data.age).toBe(2);
    const other = await make();
    databases.push(other);
    const foreign = other.transaction(async (tx) => tx.collection(people).count());
    await expect(foreign).rejects.toThrow('belongs to another');
  });

  test('transaction: warns once per call site about calls outside of it', async () => {
    const { db, people } = await start();
    const warnings: string[] = [];
    const onWarning = ({ message }: Error) => warnings.push(message);
    process.on('warning', onWarning);
    const writeOutside = () => people.insert({ name: 'x', age: 1 });
    const writeTwice = async () => {
      for (let i = 0; i < 2; i++) await db.transaction(async () => void (await writeOutside()));
      await db.transaction(async (transaction) => {
        await people.insert({ name: 'y', age: 1 }, { transaction });
        await transaction.collection(people).count();
      });
      await writeOutside();
      await new Promise((resolve) => setImmediate(resolve));
    };
    try {
      await writeTwice();
      expect(warnings).toHaveLength(1);
      expect(warnings[0]).toContain('A call on "people" inside a transaction callback');
      expect(warnings[0]).toContain('api.test.ts');
      vi.stubEnv('NODE_ENV', 'production');
      await db.transaction(async () => void (await people.insert({ name: 'x', age: 1 })));
      await new Promise((resolve) => setImmediate(resolve));
      expect(warnings).toHaveLength(1);
    } finally {
      process.off('warning', onWarning);
      vi.unstubAllEnvs();
    }
  });

  test('bulk: each operation has its own result', async () => {
    const { people } = await start();
    const person = (name: string, age = 1) => ({ name, age });
    await people.insertWithKey('b', person('B'));
    const operations = [
      { insert: { key: 'a', data: person('A') } },
      { insert: { key: 'b', data: person('B') } },
      { upsert: { key: 'b', data: person('B', 2) } },
      { update: { key: 'b', data: { city: 'Bern' }, mode: 'merge' as const } },
      { update: { key: 'b', data: person('X'), expectedRev: 9 } },
      { delete: { key: 'a' } },
      { delete: { key: 'nobody' } },
    ];
    const { results, seq } = await people.bulkWrite(operations, { requestId: 'one' });
    expect(results.map(({ status, error }) => error?.reason ?? status)).toEqual([
      'OK',
      'DUPLICATE_KEY',
      'OK',
      'OK',
      'REV_MISMATCH',
      'OK',
      'KEY_NOT_FOUND',
    ]);
    expect(results[0]).toMatchObject({ key: 'a', rev: 1, created: true, seq });
    expect(results[3]).toMatchObject({ key: 'b', rev: 3, created: false });
    expect((await people.findByKey('b'))?.data).toEqual({ name: 'B', age: 2, city: 'Bern' });
    const again = await people.bulkWrite(operations, { requestId: 'one' });
    expect(again.results.map(({ status, rev }) => [status, rev])).toEqual(
      results.map(({ status, rev }) => [status, rev]),
    );
    expect((await people.findByKey('b'))?.rev).toBe(3);
    expect(await codeOf(people.bulkWrite(operations.slice(1), { requestId: 'one' }))).toBe(
      'REQUEST_ID_REUSED',
    );
    const ordered = await people.bulkWrite(operations, { ordered: true, returnRecords: true });
    expect(ordered.results.map(({ status }) => status)).toEqual([
      'OK',
      'FAILED',
      ...Array.from({ length: 5 }, () => 'NOT_RUN'),
    ]);
    expect(ordered.results[0]?.record?.data).toEqual(person('A'));
    expect(await codeOf(people.bulkWrite(operations, { atomic: true }))).toBe('DUPLICATE_KEY');
    const many = Array.from({ length: 10_001 }, () => ({ delete: { key: 'x' } }));
    expect(await codeOf(people.bulkWrite(many))).toBe('BAD_REQUEST');
    expect(await codeOf(people.bulkWrite([{} as never], { atomic: true }))).toBe('BAD_REQUEST');
    expect((await people.bulkWrite([])).results).toEqual([]);
  });

  test('bulk: a unique index refuses single records, insertMany all or nothing', async () => {
    const { db } = await start();
    const users = db.collection<{ email: string; n: number }>('users');
    const users3 = Array.from({ length: 3 }, (_, n) => ({ email: `e${n % 2}`, n }));
    const operations = users3.map((data) => ({ insert: { data } }));
    const { results } = await users.bulkWrite(operations, { requestId: 'split' });
    expect(results.map(({ error }) => error?.reason)).toEqual([
      undefined,
      undefined,
      'UNIQUE_VIOLATION',
    ]);
    await users.bulkWrite(operations, { requestId: 'split' });
    expect(await users.count()).toBe(2);
    expect(await codeOf(users.insertMany([{ email: 'new', n: 1 }, users3[0]!]))).toBe(
      'UNIQUE_VIOLATION',
    );
    expect(await users.count()).toBe(2);
    const inserted = await users.insertMany([
      { email: 'x', n: 1 },
      { email: 'y', n: 2 },
    ]);
    expect(inserted.map(({ data, rev }) => [data.email, rev])).toEqual([
      ['x', 1],
      ['y', 1],
    ]);
    expect(inserted[0]!.seq).toBe(inserted[1]!.seq);
    await db.transaction(async (tx) => {
      await tx.collection(users).insertMany([{ email: 'z', n: 3 }]);
      expect(await tx.collection(users).deleteMany({ email: 'x' })).toMatchObject({ changed: 1 });
    });
    expect(await users.count({ email: { in: ['x', 'z'] } })).toBe(1);
  });

  test('bulk: updateMany and deleteMany by filter, with limit and request id', async () => {
    const { people } = await start();
    const documents = Array.from({ length: 2_500 }, (_, age) => ({ name: 'n', age }));
    await people.insertMany(documents);
    expect(await people.updateMany({ age: { lt: 2_000 } }, { city: 'Bern' })).toMatchObject({
      matched: 2_000,
      changed: 2_000,
    });
    expect(await people.updateMany({ age: { lt: 2_100 } }, { city: 'Bern' })).toMatchObject({
      matched: 2_100,
      changed: 100,
    });
    const limited = { limit: 10, requestId: 'ten' };
    expect(await people.deleteMany({ city: 'Bern' }, limited)).toMatchObject({ changed: 10 });
    expect(await people.deleteMany({ city: 'Bern' }, limited)).toMatchObject({ changed: 10 });
    expect(await people.count()).toBe(2_490);
    const few = await people.updateMany({ age: { gte: 0 } }, { city: null }, { limit: 5 });
    expect(few.changed).toBe(5);
    expect(few.matched).toBeGreaterThanOrEqual(5);
    expect(await codeOf(people.deleteMany(undefined as never))).toBe('BAD_REQUEST');
    expect(await people.deleteMany({})).toMatchObject({ matched: 2_490, changed: 2_490 });
    expect(await people.deleteMany({ age: 1 })).toEqual({ matched: 0, changed: 0, seq: 0 });
  });

  test('schema: a Standard Schema validates every write', async () => {
    const { db } = await start();
    const schema = z.object({
      name: z.string(),
      age: z.number().min(0),
      active: z.boolean().default(true),
    });
    const users = db.collection('users', schema);
    const ada = await users.insertWithKey('ada', { name: 'Ada', age: 36 });
    expect(ada.data).toEqual({ name: 'Ada', age: 36, active: true });
    const bad = { name: 'B', age: -1 };
    for (const call of [
      () => users.insert(bad),
      () => users.insertWithKey('b', bad),
      () => users.update(ada.id, { ...bad, active: true }),
      () => users.updateByKey('ada', bad),
      () => users.upsert('ada', bad),
      () => users.updateIfRev({ key: 'ada' }, 1, bad),
      () => users.merge(ada.id, { age: -1 }),
      () => users.mergeByKey('ada', { name: null }),
      () => users.upsertMerge('ada', { age: -1 }),
      () => users.upsertMerge('new', { age: 3 }),
    ]) {
      expect(await codeOf(call())).toBe('SCHEMA_VIOLATION');
    }
    const refusal: unknown = await users.insert({ name: 'B', age: 'x' } as never).catch((e) => e);
    expect(refusal).toMatchObject({
      detail: expect.stringContaining('at "age"'),
      extra: { errors: [{ pointer: '/data/age' }] },
    });
    expect((await users.mergeByKey('ada', { age: 37 })).data.age).toBe(37);
    expect(await codeOf(users.mergeByKey('nobody', { age: 37 }))).toBe('KEY_NOT_FOUND');
    const made = await users.upsertMerge('cyd', { name: 'Cyd', age: 1 });
    expect(made).toMatchObject({ created: true, record: { data: { active: true }, rev: 1 } });
    expect((await users.upsertMerge('cyd', { age: 2 })).created).toBe(false);
    await db.transaction(async (tx) => {
      expect(await codeOf(tx.collection(users).insert(bad))).toBe('SCHEMA_VIOLATION');
      await tx.collection(users).mergeByKey('ada', { age: 38 });
    });
    expect((await users.findByKey('ada'))?.data.age).toBe(38);
    expect(await users.count()).toBe(2);
  });

  test('transaction: retries a conflict and rolls back on a throw', async () => {
    const { db, people } = await start();
    await people.insertWithKey('n', { name: 'n', age: 0 });
    let runs = 0;
    const age = await db.transaction(async (transaction) => {
      const before = await people.findByKey('n', { transaction });
      if (++runs === 1) await people.updateByKey('n', { name: 'n', age: 10 });
      const next = before!.data.age + 1;
      await people.updateByKey('n', { name: 'n', age: next }, { transaction });
      expect(transaction.readSeq).toBeGreaterThan(0);
      return next;
    });
    expect([age, runs]).toEqual([11, 2]);
    const boom = db.transaction(async (transaction) => {
      await people.deleteByKey('n', { transaction });
      throw new Error('boom');
    });
    await expect(boom).rejects.toThrow('boom');
    expect((await people.findByKey('n'))?.data.age).toBe(11);
    const busy = db.transaction(
      async (transaction) => {
        await people.findByKey('n', { transaction });
        await people.mergeByKey('n', { age: ++runs });
        await people.mergeByKey('n', { age: 0 }, { transaction });
      },
      { tries: 2 },
    );
    expect(await codeOf(busy)).toBe('TX_CONFLICT');
    const still = db.transaction(
      (transaction) => people.insert({ name: 'x', age: 1 }, { transaction }),
      { readOnly: true },
    );
    expect(await codeOf(still)).toBe('TX_READ_ONLY');
  });

  test('transaction: many callers that change one record all get their turn', async () => {
    const { db, people } = await start();
    await people.insertWithKey('ada', { name: 'Ada', age: 0 });
    const count = 30;
    const grow = async (tx: Parameters<Parameters<typeof db.transaction>[0]>[0]) => {
      const inside = tx.collection(people);
      const ada = await inside.findByKey('ada');
      await inside.mergeByKey('ada', { age: ada!.data.age + 1 });
    };
    await Promise.all(Array.from({ length: count }, () => db.transaction(grow)));
    expect((await people.findByKey('ada'))?.data.age).toBe(count);
  });

  test('transaction: begin is committed or rolled back by the caller', async () => {
    const { db, people } = await start();
    const committed = await db.begin({ lifetimeMs: 30_000 });
    await people.insertWithKey('a', { name: 'A', age: 1 }, { transaction: committed });
    expect(await people.findByKey('a')).toBeUndefined();
    expect(await committed.commit()).toMatchObject({ seq: 1, operations: 1 });
    const rolledBack = await db.begin();
    await people.deleteByKey('a', { transaction: rolledBack });
    await rolledBack.rollback();
    expect((await people.findByKey('a'))?.rev).toBe(1);
    const beaten = await db.begin();
    await people.findByKey('a', { transaction: beaten });
    await people.mergeByKey('a', { age: 2 });
    await people.insert({ name: 'B', age: 1 }, { transaction: beaten });
    expect(await codeOf(beaten.commit())).toBe('TX_CONFLICT');
    const still = await db.begin({ readOnly: true });
    const write = people.insert({ name: 'x', age: 1 }, { transaction: still });
    expect(await codeOf(write)).toBe('TX_READ_ONLY');
    await still.rollback();
  });

  test('watch: watches and live queries deliver the same', async () => {
    const { db, people } = await start();
    const stop = new AbortController();
    const watch = people.watch({
      filter: { field: 'age', op: 'gt', value: 30 },
      includeBefore: true,
    });
    const all = db.watch({ signal: stop.signal });
    const live = people.live({ orderBy: [{ field: 'age' }], limit: 2 });
    expect((await live.next()).value).toMatchObject({ records: [], seq: 0 });
    await people.insertWithKey('ada', { name: 'Ada', age: 36 });
    await people.mergeByKey('ada', { age: 20 });
    await db.collection('others').insert({ n: 1 });
    const [first, second] = [await watch.next(), await watch.next()];
    expect(first.value).toMatchObject({
      kind: 'changes',
      seq: 1,
      changes: [{ op: 'insert', entered: true }],
    });
    expect(second.value).toMatchObject({
      seq: 2,
      changes: [{ op: 'update', left: true, before: { data: { age: 36 } }, record: { rev: 2 } }],
    });
    expect(typeof first.value!.resumeToken).toBe('string');
    await watch.return!();
    expect((await live.next()).value).toMatchObject({ records: [{ key: 'ada' }], seq: 1 });
    expect((await live.next()).value).toMatchObject({ changed: [{ data: { age: 20 } }], seq: 2 });
    await live.return!();
    const collections: string[] = [];
    for await (const { changes } of all) {
      collections.push(...changes.map(({ collection }) => collection));
      if (collections.length === 3) stop.abort();
    }
    expect(collections).toEqual(['people', 'people', 'others']);
  });

  test('schemas: set, enforced, listed and removed', async () => {
    const { db, people } = await start();
    await people.insertWithKey('ada', { name: 'Ada', age: 36 });
    const schema = { properties: { age: { type: 'integer', maximum: 40 } } };
    const tight = await db.schemas.set('people', { properties: { age: { maximum: 9 } } });
    expect(tight).toMatchObject({ applied: false, violations: [{ key: 'ada', path: 'age' }] });
    expect((await db.schemas.set('people', schema)).applied).toBe(true);
    expect(await db.schemas.list()).toMatchObject([{ collection: 'people', schema }]);
    expect(await codeOf(people.insert({ name: 'Bob', age: 41 }))).toBe('SCHEMA_VIOLATION');
    const inside = db.transaction((tx) => tx.collection(people).mergeByKey('ada', { age: 0.5 }));
    expect(await codeOf(inside)).toBe('SCHEMA_VIOLATION');
    expect(await codeOf(db.schemas.set('people', { type: 7 }))).toBe('BAD_SCHEMA');
    await db.schemas.remove('people');
    expect(await db.schemas.get('people')).toBeUndefined();
    expect(await codeOf(db.schemas.remove('people'))).toBe('SCHEMA_NOT_FOUND');
    await people.insert({ name: 'Bob', age: 41 });
  });

  test('admin: backups have the same parts and compact the same result', async () => {
    const { db, people } = await start();
    await people.insertWithKey('ada', { name: 'Ada', age: 36 });
    const parts = [];
    for await (const part of db.backup()) parts.push(part);
    expect(parts.map(({ kind }) => kind)).toEqual(['header', 'data', 'trailer']);
    expect(parts[0]).toMatchObject({ header: { formatVersion: 1, seq: 1, epoch: 1, sinceSeq: 0 } });
    expect(await codeOf(db.backup({ sinceSeq: 99 }).next())).toBe('BAD_REQUEST');
    const compacted = await db.compact();
    expect(Object.keys(compacted).toSorted()).toEqual(
      ['bytesAfter', 'bytesBefore', 'elapsedMs', 'oldestSeq'].toSorted(),
    );
    expect((await people.findByKey('ada'))?.data.name).toBe('Ada');
  });
});
