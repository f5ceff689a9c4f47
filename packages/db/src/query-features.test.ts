import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { codeOf, useDatabases } from './api-ways.test-support.js';
import { useServers } from './client/server.test-support.js';
import { open, type Filter } from './index.js';

describe.each(useDatabases())('%s: queries', (_way, start) => {
  test('elemMatch, all, size and type look into arrays', async () => {
    const orders = (await start()).collection('orders');
    const items = (...list: [string, number][]) => list.map(([sku, qty]) => ({ sku, qty }));
    await orders.insertWithKey('a', { items: items(['x', 1], ['y', 9]), tags: ['p', 'q'], n: [5] });
    await orders.insertWithKey('b', { items: items(['x', 9]), tags: ['q'], n: [1, 8] });
    await orders.insertWithKey('c', { items: 'none', tags: null });
    const keys = async (filter: Filter<Record<string, unknown>>) =>
      (await orders.find({ filter })).records.map(({ key }) => key).join('');
    expect(await keys({ items: { elemMatch: { sku: 'x', qty: { gt: 5 } } } })).toBe('b');
    const nested = { and: [{ field: 'sku', op: 'eq', value: 'y' }] };
    expect(await keys({ field: 'items', op: 'elemMatch', value: nested })).toBe('a');
    expect(await keys({ n: { elemMatch: { gte: 2, lt: 6 } } })).toBe('a');
    expect(await keys({ tags: { all: ['q', 'p'] } })).toBe('a');
    expect(await keys({ tags: { size: 1 } })).toBe('b');
    expect(await keys({ tags: { type: 'null' } })).toBe('c');
    expect(await keys({ items: { type: 'text' } })).toBe('c');
    expect(await keys({ items: { type: 'array' } })).toBe('ab');
    expect(await codeOf(keys({ tags: { type: 'list' } }))).toBe('BAD_FILTER');
    expect(await codeOf(keys({ tags: { elemMatch: 5 } }))).toBe('BAD_FILTER');
    expect(await codeOf(keys({ tags: { all: [] } }))).toBe('BAD_FILTER');
  });

  test('an index without case serves eqi and startsWithi, and may be unique', async () => {
    const db = await start();
    const users = db.collection('users');
    await users.insert({ email: 'Ada@Example.org' });
    await db.catalog.createIndex('users', { fields: ['email'], unique: true, collation: 'ci' });
    await users.insert({ email: 'ÉVA@example.org' });
    const ready = async () => (await db.collections())[0]?.indexes[0]?.state;
    await expect.poll(ready).toBe('ready');
    const find = (filter: Filter<Record<string, unknown>>) => users.find({ filter, explain: true });
    const found = await find({ email: { eqi: 'ADA@EXAMPLE.ORG' } });
    expect(found.plan).toMatchObject({ index: 'email', rowsScanned: 1, fullScan: false });
    expect(found.records).toHaveLength(1);
    const started = await find({ email: { startsWithi: 'e\u0301va' } });
    expect([started.records.length, started.plan?.fullScan]).toEqual([1, false]);
    expect((await find({ email: 'ada@example.org' })).records).toEqual([]);
    expect(await codeOf(users.insert({ email: 'ada@EXAMPLE.org' }))).toBe('UNIQUE_VIOLATION');
    expect(await db.collections()).toMatchObject([
      { name: 'users', records: 2, indexes: [{ name: 'email', unique: true, collation: 'ci' }] },
    ]);
  });

  test('startsWithi: a sigma that ends the text is the one inside a word, too', async () => {
    const db = await start();
    const people = db.collection('people');
    for (const name of ['ΚΩΣΤΑΣ', 'κως', 'ΚΩΝ', 'σ']) await people.insert({ name });
    const countOf = (text: string) => people.count({ name: { startsWithi: text } });
    const check = async () => {
      for (const text of ['ΚΩΣ', 'κωσ', 'κως', 'Κως']) expect(await countOf(text)).toBe(2);
      expect(await Promise.all(['ΚΩΣΤΑΣ', 'Σ', 'ς', 'κως '].map(countOf))).toEqual([1, 1, 1, 0]);
    };
    await check();
    await db.catalog.createIndex('people', { fields: ['name'], collation: 'ci' });
    const filter = { name: { startsWithi: 'ΚΩΣ' } };
    const planOf = async () => (await people.find({ filter, explain: true })).plan;
    await expect.poll(planOf).toMatchObject({ index: 'name' });
    await check();
  });

  test('an index without case gives no order, and pages lose nothing', async () => {
    const db = await start();
    const people = db.collection('people');
    await db.catalog.createIndex('people', { fields: ['name'], collation: 'ci' });
    for (const name of ['ada', 'Ada', 'ADA', 'aDa']) await people.insert({ name, team: 'x' });
    const filter = { name: { eqi: 'ADA' } };
    const planOf = async () => (await people.find({ filter, explain: true })).plan;
    await expect.poll(planOf).toMatchObject({ index: 'name' });
    const namesOf = async (desc: boolean) => {
      const names: unknown[] = [];
      let cursor: string | undefined;
      do {
        const orderBy = [{ field: 'name', desc }];
        const page = await people.find({ filter, orderBy, limit: 2, cursor });
        names.push(...page.records.map(({ data }) => data['name']));
        cursor = page.nextCursor;
      } while (cursor);
      return names;
    };
    const inOrder = ['ADA', 'Ada', 'aDa', 'ada'];
    expect(await namesOf(false)).toEqual(inOrder);
    expect(await namesOf(true)).toEqual(inOrder.toReversed());
  });

  test('a partial index has the records of its condition, and serves queries that imply it', async () => {
    const db = await start();
    const jobs = db.collection('jobs');
    const where = { state: 'open' };
    await db.catalog.createIndex('jobs', { fields: ['owner'], unique: true, where });
    const ready = async () => (await db.collections())[0]?.indexes[0]?.state;
    await expect.poll(ready).toBe('ready');
    await jobs.insertWithKey('a', { owner: 'x', state: 'open' });
    await jobs.insert({ owner: 'x', state: 'done' });
    expect(await codeOf(jobs.insert({ owner: 'x', state: 'open' }))).toBe('UNIQUE_VIOLATION');
    const planOf = async (filter: Filter<Record<string, unknown>>) =>
      (await jobs.find({ filter, explain: true })).plan;
    expect(await planOf({ owner: 'x', state: 'open' })).toMatchObject({ index: 'owner' });
    expect(await planOf({ owner: 'x' })).toMatchObject({ fullScan: true });
    expect(await jobs.count({ owner: 'x' })).toBe(2);
    await jobs.update({ key: 'a' }, { $set: { state: 'done' } });
    await jobs.insert({ owner: 'x', state: 'open' });
    expect(await jobs.count({ owner: 'x', state: 'open' })).toBe(1);
    expect(await db.catalog.dropIndex('jobs', 'owner')).toBeGreaterThan(0);
  });

  test('a projection leaves fields out', async () => {
    const people = (await start()).collection('people');
    await people.insert({ name: 'Ada', secret: 1, a: { b: 2, c: [{ d: 3, e: 4 }] } });
    const projection = { exclude: ['secret', 'a.b', 'a.c.d'] };
    const { records } = await people.find({ projection });
    expect(records[0]?.data).toEqual({ name: 'Ada', a: { c: [{ e: 4 }] } });
    expect(await codeOf(people.find({ projection, fields: ['name'] }))).toBe('BAD_REQUEST');
  });

  test('distinct lists the different values of a field', async () => {
    const db = await start();
    const people = db.collection('people');
    for (const [city, tags] of [
      ['Bern', ['b', 'a']],
      ['Oslo', ['a']],
      ['Bern', []],
      [null, 'c'],
    ]) {
      await people.insert({ city, tags });
    }
    await people.insert({});
    expect(await people.distinct('city')).toEqual([null, 'Bern', 'Oslo']);
    expect(await people.distinct('tags', { city: { in: ['Bern', null] } })).toEqual([
      'a',
      'b',
      'c',
    ]);
    const inside = await db.transaction(async (tx) => {
      await tx.collection(people).insert({ city: 'Rome' });
      return tx.collection(people).distinct('city', { city: { type: 'text' } });
    });
    expect(inside).toEqual(['Bern', 'Oslo', 'Rome']);
    expect(await codeOf(people.distinct(''))).toBe('BAD_REQUEST');
  });

  test('groups by the start of an interval and by buckets', async () => {
    const events = (await start()).collection('events');
    for (const [at, n] of [
      ['2024-10-27T00:30:00Z', 5],
      ['2024-10-27T01:30:00Z', 10],
      ['2024-10-27T22:59:59Z', 99],
      ['2024-10-27T23:00:00Z', -1],
      ['soon', 'x'],
    ] as const) {
      await events.insert({ at, n });
    }
    const keys = async (...groupBy: object[]) =>
      (await events.aggregate({ groupBy: groupBy as never })).groups.map(({ key, count }) => [
        ...Object.values(key),
        count,
      ]);
    const trunc = (unit: string, zone?: string) => ({
      dateTrunc: { field: 'at', unit, zone },
      as: 't',
    });
    expect(await keys(trunc('hour', 'Europe/Zurich'))).toEqual([
      [null, 1],
      ['2024-10-27T02:00:00+01:00', 1],
      ['2024-10-27T02:00:00+02:00', 1],
      ['2024-10-27T23:00:00+01:00', 1],
      ['2024-10-28T00:00:00+01:00', 1],
    ]);
    expect(await keys(trunc('day', 'Europe/Zurich'))).toEqual([
      [null, 1],
      ['2024-10-27T00:00:00+02:00', 3],
      ['2024-10-28T00:00:00+01:00', 1],
    ]);
    expect(await keys(trunc('week', 'Europe/Zurich'))).toEqual([
      [null, 1],
      ['2024-10-21T00:00:00+02:00', 3],
      ['2024-10-28T00:00:00+01:00', 1],
    ]);
    expect(await keys(trunc('day'))).toEqual([
      [null, 1],
      ['2024-10-27T00:00:00Z', 4],
    ]);
    const bucket = { bucket: { field: 'n', edges: [0, 10, 100] }, as: 'b' };
    expect(await keys(bucket)).toEqual([
      [null, 2],
      [0, 1],
      [10, 2],
    ]);
    expect(await codeOf(keys(trunc('day', 'Mars')))).toBe('BAD_REQUEST');
    expect(await codeOf(keys({ bucket: { field: 'n', edges: [2, 1] } }))).toBe('BAD_REQUEST');
    expect(await codeOf(keys(trunc('minute')))).toBe('BAD_REQUEST');
  });
});

describe.each(useDatabases())('%s: search', (_way, start) => {
  test('ranks, highlights, filters and limits in one query', async () => {
    const db = await start();
    const docs = db.collection('docs');
    const weights = { title: 2 };
    const declared = { search: ['title', 'body'], language: 'en', weights };
    await db.catalog.createIndex('docs', declared);
    await docs.insertWithKey('a', { title: 'Durable queues', body: 'Tasks on disk.', n: 1 });
    await docs.insertWithKey('b', { title: 'Notes', body: 'A queue, durable with Redis.', n: 2 });
    await docs.insertWithKey('c', { title: 'Apples', body: 'Nothing to queue for', n: 3 });
    const { records, plan } = await docs.find({ search: 'durable queue', explain: true });
    expect(records.map(({ key }) => key)).toEqual(['a', 'b']);
    expect(records[0]!.score).toBeGreaterThan(records[1]!.score!);
    expect(records[0]!.highlights).toEqual({
      title: ['<mark>Durable</mark> <mark>queues</mark>'],
    });
    expect(plan).toMatchObject({ index: 'search:title,body', fullScan: false });
    const keys = async (query: object) =>
      (await docs.find(query)).records.map(({ key }) => key).join('');
    expect(await keys({ search: 'queue -redis' })).toBe('ac');
    expect(await keys({ search: '"queue durable"' })).toBe('b');
    expect(await keys({ search: { text: 'durible', fuzzy: true } })).toBe('ab');
    expect(await keys({ search: 'queue', filter: { n: { gt: 1 } }, limit: 1 })).toBe('c');
    expect(await keys({ search: { text: 'redis apple', mode: 'any' } })).toHaveLength(2);
    expect(await codeOf(db.collection('x').find({ search: 'a' }))).toBe('INDEX_REQUIRED');
    const [{ indexes } = { indexes: [] }] = await db.collections();
    expect(indexes).toMatchObject([{ name: 'search:title,body', kind: 'search', weights }]);
    await docs.update({ key: 'a' }, { $set: { title: 'Gone' } });
    expect(await keys({ search: 'durable' })).toBe('b');
    await db.catalog.dropIndex('docs', 'search:title,body');
    expect(await codeOf(docs.find({ search: 'a' }))).toBe('INDEX_REQUIRED');
  });
});

describe.each(useDatabases())('%s: vectors', (_way, start) => {
  test('near finds the nearest that match a filter, and merges with search', async () => {
    const db = await start();
    const docs = db.collection('docs');
    await db.catalog.createIndex('docs', { vector: 'v', dims: 2, metric: 'cosine' });
    await db.catalog.createIndex('docs', { search: ['t'] });
    await docs.insertWithKey('a', { t: 'alpha', v: [1, 0], n: 1 });
    await docs.insertWithKey('b', { t: 'beta', v: new Float32Array([1, 1]), n: 2 });
    await docs.insertWithKey('c', { t: 'alpha beta', v: [0, 3], n: 3 });
    await docs.insertWithKey('d', { t: 'none' });
    expect(await codeOf(docs.insert({ v: [1, 2, 3] }))).toBe('BAD_DATA');
    expect(await codeOf(docs.insert({ v: 'x' }))).toBe('BAD_DATA');
    const near = { field: 'v', vector: [1, 0.1], k: 2 };
    const found = await docs.find({ near, explain: true });
    expect(found.records.map(({ key }) => key)).toEqual(['a', 'b']);
    expect(found.records[0]!.score).toBeCloseTo(1 / Math.hypot(1, 0.1), 5);
    expect(found.plan).toMatchObject({
      index: 'vector:v',
      note: expect.stringContaining('recall'),
    });
    const keys = async (query: object) =>
      (await docs.find(query)).records.map(({ key }) => key).join('');
    expect(await keys({ near: { ...near, k: 10 } })).toBe('abc');
    expect(await keys({ near, filter: { n: { gt: 1 } } })).toBe('bc');
    expect(await keys({ near: { ...near, vector: new Float32Array([0, 1]) } })).toBe('cb');
    expect(await keys({ near: { ...near, k: 10 }, search: 'beta' })).toBe('bca');
    const { records } = await docs.find({ near: { ...near, k: 1 }, search: 'alpha' });
    expect(records[0]).toMatchObject({ key: 'a', score: 2 / 61 });
    const codes = [
      { ...near, vector: [1] },
      { ...near, k: 1_001 },
      { ...near, vector: ['x'] },
    ];
    for (const wrong of codes) {
      expect(await codeOf(docs.find({ near: wrong as never }))).toBe('BAD_REQUEST');
    }
    expect(await codeOf(docs.find({ near: { ...near, field: 'w' } }))).toBe('INDEX_REQUIRED');
    await db.transaction(async (tx) => {
      await tx.collection(docs).insertWithKey('e', { v: [10, 1] });
      await tx.collection(docs).deleteByKey('a');
      const own = await tx.collection(docs).find({ near });
      expect(own.records.map(({ key }) => key)).toEqual(['e', 'b']);
    });
    const [{ indexes } = { indexes: [] }] = await db.collections();
    expect(indexes[0]).toMatchObject({ kind: 'vector', dims: 2, metric: 'cosine' });
  });
});

describe.each(useDatabases())('%s: lookup', (_way, start) => {
  test('joins another collection by index, in find and aggregate', async () => {
    const db = await start();
    const orders = db.collection('orders');
    const people = db.collection('people');
    await db.catalog.createIndex('people', { fields: ['code'] });
    await people.insertWithKey('p1', { code: 'a', name: 'Ada', city: 'Bern' });
    await people.insertWithKey('p2', { code: 'b', name: 'Bob', city: 'Oslo' });
    await people.insertWithKey('p3', { code: 'b', name: 'Ben', city: 'Oslo' });
    await orders.insert({ n: 1, who: 'a' });
    await orders.insert({ n: 2, who: ['b', 'a'] });
    await orders.insert({ n: 3 });
    const lookup = { from: 'people', local: 'who', foreign: 'code', as: 'buyers' };
    const names = async (query: object) =>
      (await orders.find(query)).records.map(({ data }) =>
        ((data['buyers'] ?? []) as { name: string }[]).map(({ name }) => name).sort(),
      );
    expect(await names({ lookup })).toEqual([['Ada'], ['Ada', 'Ben', 'Bob'], []]);
    expect(await names({ lookup: [{ ...lookup, limit: 1 }], fields: ['buyers.name'] })).toEqual([
      ['Ada'],
      [expect.any(String)],
      [],
    ]);
    const parts = await orders.find({ lookup, fields: ['buyers.name'], limit: 1 });
    expect(parts.records[0]?.data).toEqual({ buyers: [{ name: 'Ada' }] });
    const projection = { exclude: ['who', 'buyers.code', 'buyers.city'] };
    const rest = await orders.find({ lookup, projection, limit: 1 });
    expect(rest.records[0]?.data).toEqual({ n: 1, buyers: [{ name: 'Ada' }] });
    const byKey = { ...lookup, foreign: '$key', local: 'n' };
    expect(await names({ lookup: byKey, filter: { n: 1 } })).toEqual([[]]);
    const { groups } = await orders.aggregate({ lookup, groupBy: ['buyers.city'] });
    expect(groups.map(({ key, count }) => [key['buyers.city'], count])).toEqual([
      [null, 1],
      [['Bern'], 1],
      [['Oslo', 'Oslo', 'Bern'], 1],
    ]);
    await db.transaction(async (tx) => {
      await tx.collection(people).insert({ code: 'a', name: 'New' });
      const { records } = await tx.collection(orders).find({ lookup, limit: 1 });
      expect(records[0]?.data['buyers']).toHaveLength(2);
      await tx.collection(people).deleteByKey('p1');
    });
    expect(await names({ lookup, limit: 1 })).toEqual([['New']]);
  });

  test('finds the matches behind many that its transaction has deleted', async () => {
    const db = await start();
    await db.collection('orders').insert({ k: 1 });
    await db.catalog.createIndex('items', { fields: ['k'] });
    const items = db.collection('items');
    await items.insertMany(Array.from({ length: 300 }, () => ({ k: 1 })));
    const planOf = async () => (await items.find({ filter: { k: 1 }, explain: true })).plan;
    await expect.poll(planOf).toMatchObject({ index: 'k' });
    const lookup = { from: 'items', local: 'k', foreign: 'k', as: 'm', limit: 5 };
    await db.transaction(async (tx) => {
      const { records } = await tx.collection(items).find({ limit: 290 });
      for (const { id } of records) await tx.collection(items).delete(id);
      const found = await tx.collection(db.collection('orders')).find({ lookup });
      expect(found.records[0]?.data['m']).toHaveLength(5);
    });
  });

  test.each(['with', 'without'])('%s an index an array matches by its elements', async (way) => {
    const db = await start();
    await db.collection('people').insert({ name: 'Ada' });
    if (way === 'with') await db.catalog.createIndex('teams', { fields: ['members'] });
    const teams = db.collection('teams');
    await teams.insertMany([
      { team: 'x', members: ['Ada', 'Bob'] },
      { team: 'y', members: 'Ada' },
      { team: 'z', members: ['Adam', ['Ada']] },
    ]);
    if (way === 'with') await teams.insertMany(Array.from({ length: 1_000 }, (_, n) => ({ n })));
    const lookup = { from: 'teams', local: 'name', foreign: 'members', as: 'teams' };
    const found = async (people = db.collection('people')) => {
      const { records } = await people.find({ lookup });
      return (records[0]!.data['teams'] as { team: string }[]).map(({ team }) => team).sort();
    };
    expect(await found()).toEqual(['x', 'y']);
    await db.transaction(async (tx) => {
      await tx.collection(teams).insert({ team: 'w', members: ['Ada'] });
      expect(await found(tx.collection('people'))).toEqual(['w', 'x', 'y']);
    });
  });

  test('without an index it reads at most 1,000 records', async () => {
    const db = await start();
    await db.collection('orders').insert({ who: 5 });
    const people = db.collection('people');
    await people.insertMany(Array.from({ length: 1_000 }, (_, n) => ({ n })));
    const lookup = { from: 'people', local: 'who', foreign: 'n', as: 'p' };
    const find = () => db.collection('orders').find({ lookup });
    expect((await find()).records[0]?.data).toEqual({ who: 5, p: [{ n: 5 }] });
    await people.insert({ n: 1_000 });
    expect(await codeOf(find())).toBe('INDEX_REQUIRED');
    const wrong = db.collection('orders').find({ lookup: { ...lookup, as: 'a.b' } });
    expect(await codeOf(wrong)).toBe('BAD_REQUEST');
    const nothing = { ...lookup, from: 'nobody' };
    const { records } = await db.collection('orders').find({ lookup: nothing });
    expect(records[0]?.data).toEqual({ who: 5, p: [] });
  });
});

describe('REST: queries', () => {
  const servers = useServers();

  test('records:distinct, expressions in group_by, exclude, and indexes with options', async () => {
    const { listeners } = await servers.serve();
    const base = listeners.find(({ listener }) => listener === 'http')!.url;
    const post = async (path: string, body: object) => {
      const headers = { 'content-type': 'application/json' };
      const options = { method: 'POST', headers, body: JSON.stringify(body) };
      const reply = await fetch(`${base}/v1/${path}`, options);
      return [reply.status, await reply.json()] as [number, any];
    };
    await post('c/records', { data: { city: 'Bern', n: 3, at: '2024-05-05T12:00:00Z' } });
    await post('c/records', { data: { city: 'Oslo', n: 30 } });
    const filter = { field: 'n', op: 'gt', value: 1 };
    expect(await post('c/records:distinct', { field: 'city', filter })).toEqual([
      200,
      { values: ['Bern', 'Oslo'], read_seq: 2 },
    ]);
    expect((await post('c/records:distinct', {}))[0]).toBe(400);
    const groups = ['city', { bucket: { field: 'n', edges: [0, 10, 50] }, as: 'size' }];
    const [, byGroup] = await post('c/records:aggregate', { group_by: groups });
    expect(byGroup.groups.map(({ key }: any) => key)).toEqual([
      { city: 'Bern', size: 0 },
      { city: 'Oslo', size: 10 },
    ]);
    const trunc = { dateTrunc: { field: 'at', unit: 'week', zone: 'UTC' }, as: 'week' };
    const [, byWeek] = await post('c/records:aggregate', { group_by: [trunc] });
    expect(byWeek.groups[1].key).toEqual({ week: '2024-04-29T00:00:00Z' });
    const [, page] = await post('c/records:find', { projection: { exclude: ['n', 'at'] } });
    expect(page.records.map(({ data }: any) => data)).toEqual([{ city: 'Bern' }, { city: 'Oslo' }]);
    const [status, made] = await post('admin/collections/c/indexes', {
      fields: ['city'],
      collation: 'ci',
      where: filter,
    });
    expect([status, made.index.collation]).toEqual([200, 'ci']);
    expect((await post('admin/collections/c/indexes', { fields: ['n'], collation: 'de' }))[0]).toBe(
      400,
    );
  });

  test('find takes search as a text or an object; an index takes search', async () => {
    const { listeners } = await servers.serve();
    const base = listeners.find(({ listener }) => listener === 'http')!.url;
    const post = async (path: string, body: object) => {
      const headers = { 'content-type': 'application/json' };
      const options = { method: 'POST', headers, body: JSON.stringify(body) };
      return (await fetch(`${base}/v1/${path}`, options)).json() as Promise<any>;
    };
    const made = await post('admin/collections/c/indexes', { search: ['t'], weights: { t: 2 } });
    expect(made.index).toMatchObject({ kind: 'search', language: 'none', weights: { t: 2 } });
    await post('c/records', { data: { t: 'Hello "world"' } });
    const { records } = await post('c/records:find', { search: 'hello' });
    const [{ score, highlights }] = records;
    expect([score > 0, highlights]).toEqual([true, { t: ['<mark>Hello</mark> "world"'] }]);
    const search = { text: 'wor*', highlight: false };
    const plain = await post('c/records:find', { search, explain: true });
    expect(plain.records[0]).not.toHaveProperty('highlights');
    expect(plain.plan.index).toBe('search:t');
  });

  test('status of the client lists the collections', async () => {
    const client = await servers.connect((await servers.serve()).url);
    await client.collection('a').insert({});
    expect((await client.status()).collections).toMatchObject([{ name: 'a', records: 1 }]);
    expect((await client.status({ includeCollections: false })).collections).toEqual([]);
  });
});

test('open: :memory: has no files, and everything else', async () => {
  const before = readdirSync('.');
  const db = await open(':memory:', { collections: { c: { indexes: [{ fields: ['n'] }] } } });
  const c = db.collection('c');
  for (let n = 0; n < 50; n++) await c.insert({ n });
  await db.transaction((tx) => tx.collection(c).insert({ n: 50 }));
  expect(readdirSync(db.directory)).toEqual([]);
  expect(readdirSync('.')).toEqual(before);
  expect((await c.find({ filter: { n: { gt: 48 } }, explain: true })).records).toHaveLength(2);
  await db.compact();
  expect((await db.verify()).problems).toEqual([]);
  expect(await c.count()).toBe(51);
  await db.close();
  expect(() => readdirSync(db.directory)).toThrow('ENOENT');
  const again = await open(':memory:');
  expect(await again.collections()).toEqual([]);
  await again.close();
});
