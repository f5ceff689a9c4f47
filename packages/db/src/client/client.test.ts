import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Refusal } from '@millrace/kit/errors';
import { hashSecret } from '@millrace/kit/tokens';
import { expect, test } from 'vitest';
import { refusalOf } from '../../../engine/test/scratch.test-support.js';
import { useServers } from './server.test-support.js';
import type { CompactionStatus } from './status.js';

interface Person {
  name: string;
  age: number;
  city?: string;
  tags?: string[];
}

const servers = useServers();

async function people(flags = {}) {
  const server = await servers.serve(flags);
  const db = await servers.connect(server.url);
  return { server, db, people: db.collection<Person>('people') };
}

test('client: writes, reads, updates and deletes a record by id', async () => {
  const { people: records, server } = await people();
  const ada = await records.insert({ name: 'Ada', age: 36 });
  expect(ada).toMatchObject({ key: '', rev: 1, seq: 1, data: { name: 'Ada', age: 36 } });
  expect(ada.createdAt).toBeInstanceOf(Date);
  expect(ada).toEqual(await server.database.collection('people').findById(ada.id));
  expect(await records.findById(ada.id)).toEqual(ada);
  expect(await records.findById('nobody')).toBeUndefined();
  expect(await records.findById('')).toBeUndefined();
  expect((await records.update(ada.id, { name: 'Ada', age: 37 })).rev).toBe(2);
  const merged = await records.merge(ada.id, { city: 'London' });
  expect(merged.data).toEqual({ name: 'Ada', age: 37, city: 'London' });
  const gone = await records.delete(ada.id);
  expect(gone).toMatchObject({ id: ada.id, rev: 3, data: { city: 'London' } });
  expect(await records.findById(ada.id)).toBeUndefined();
});

test('client: keyed records, revisions and TTL', async () => {
  const { people: records } = await people();
  const first = await records.insertWithKey('grace', { name: 'Grace', age: 40 });
  const duplicate = await refusalOf(records.insertWithKey('grace', { name: 'G', age: 1 }));
  expect(duplicate).toMatchObject({
    code: 'DUPLICATE_KEY',
    extra: { members: { metadata: { collection: 'people', key: 'grace' } } },
  });
  expect(await records.upsert('grace', { name: 'Grace', age: 41 })).toMatchObject({
    created: false,
    record: { id: first.id, rev: 2 },
  });
  expect((await records.upsertMerge('alan', { name: 'Alan', age: 41 })).created).toBe(true);
  expect((await records.mergeByKey('grace', { tags: ['navy'] })).data.tags).toEqual(['navy']);
  expect((await records.updateByKey('grace', { name: 'G', age: 2 })).rev).toBe(4);
  const stale = await refusalOf(records.updateIfRev({ key: 'grace' }, 1, { name: 'G', age: 3 }));
  expect(stale).toMatchObject({
    code: 'REV_MISMATCH',
    extra: { members: { metadata: { current_rev: '4' } } },
  });
  const updated = await records.updateIfRev({ id: first.id }, 4, { name: 'G', age: 3 });
  expect(updated.rev).toBe(5);
  expect(await records.findByKey('nobody')).toBeUndefined();
  expect((await records.deleteByKey('grace')).rev).toBe(5);
  const brief = await records.insert({ name: 'B', age: 1 }, { ttlMs: 60_000 });
  expect(brief.expiresAt!.getTime() - brief.createdAt.getTime()).toBe(60_000);
  expect((await refusalOf(records.insert({ name: 'B', age: 1 }, { ttlMs: -1 }))).code).toBe(
    'BAD_REQUEST',
  );
  expect((await refusalOf(records.insert({ name: new Map() as never, age: 1 }))).code).toBe(
    'BAD_DATA',
  );
});

test('client: queries return the same as in process', async () => {
  const { people: records, server } = await people({
    collections: '{people: {indexes: [{fields: [age]}]}}',
  });
  const local = server.database.collection<Person>('people');
  await Promise.all(
    Array.from({ length: 300 }, (_, i) =>
      records.insert({ name: `n${i}`, age: i % 50, city: ['Bern', 'Oslo'][i % 2]! }),
    ),
  );
  const query = {
    filter: {
      and: [
        { field: 'age', op: 'gte', value: 10 },
        { not: { field: 'city', op: 'eq', value: 'Oslo' } },
      ],
    },
    orderBy: [{ field: 'age', desc: true }],
    limit: 100,
    explain: true,
  } as const;
  const [found, expected] = [await records.find(query), await local.find(query)];
  expect(found.records).toEqual(expected.records);
  expect(found.plan).toMatchObject({ index: 'age', fullScan: false });
  expect(found.readSeq).toBe(expected.readSeq);
  const rest = await records.find({ ...query, cursor: '', skip: 99, limit: 5 });
  const after = await records.find({ ...query, cursor: found.nextCursor, limit: 5 });
  expect(after.records[0]!.id).toBe(rest.records[1]!.id);
  expect((await records.find()).records).toHaveLength(100);
  const streamed = [];
  for await (const record of records.stream({ orderBy: [{ field: 'name' }] }))
    streamed.push(record);
  expect(streamed).toHaveLength(300);
  expect(await records.count({ field: 'city', op: 'eq', value: 'Bern' })).toBe(150);
  expect((await records.findOne({ orderBy: [{ field: 'age', desc: true }] }))?.data.age).toBe(49);
  expect(await records.findOne({ filter: { field: 'age', op: 'gt', value: 99 } })).toBeUndefined();
  expect((await records.find({ fields: ['name'], limit: 1 })).records[0]!.data).toEqual({
    name: 'n0',
  });
  const sums = {
    groupBy: ['city'],
    aggregates: [{ name: 'oldest', op: 'max', field: 'age' }],
    having: { field: 'oldest', op: 'gt', value: 48 },
  } as const;
  const [remote, inProcess] = [await records.aggregate(sums), await local.aggregate(sums)];
  expect({ ...remote, plan: undefined }).toEqual({ ...inProcess, plan: undefined });
  expect(remote.plan.rowsScanned).toBe(300);
});

test('client: an invalid query is refused before it is sent', async () => {
  const { people: records } = await people();
  const cases: [() => Promise<unknown>, string][] = [
    [() => records.find({ filtr: {} } as never), 'BAD_REQUEST'],
    [() => records.find({ filter: { feld: 'a', op: 'eq', value: 1 } as never }), 'BAD_FILTER'],
    [() => records.find({ filter: { or: [] } }), 'BAD_FILTER'],
    [() => records.find({ filter: { field: 'a', op: 'eq', value: Infinity } }), 'BAD_FILTER'],
    [() => records.find({ filter: { field: 'a', op: 'near' as never, value: 1 } }), 'BAD_FILTER'],
    [() => records.find({ limit: -1 }), 'BAD_REQUEST'],
    [() => records.updateIfRev({ key: 'k' }, 1.5, { name: 'x', age: 1 }), 'BAD_REQUEST'],
    [() => records.count(undefined, { minSeq: -1 }), 'BAD_REQUEST'],
    [() => records.find({ cursor: 'nonsense' }), 'BAD_CURSOR'],
  ];
  for (const [call, code] of cases) expect((await refusalOf(call())).code).toBe(code);
});

test('client: a transaction reads its own writes, commits atomically and retries conflicts', async () => {
  const { db, people: records } = await people();
  const accounts = db.collection<{ cents: number }>('accounts');
  await accounts.insertWithKey('ada', { cents: 500 });
  let runs = 0;
  const left = await db.transaction(async (transaction) => {
    const ada = await accounts.findByKey('ada', { transaction });
    const cents = ada!.data.cents - 100;
    await accounts.updateByKey('ada', { cents }, { transaction });
    await records.insertWithKey('note', { name: 'paid', age: 1 }, { transaction });
    expect((await accounts.findByKey('ada', { transaction }))!.data.cents).toBe(cents);
    expect(await records.findByKey('note')).toBeUndefined();
    if (++runs === 1) await accounts.updateByKey('ada', { cents: 1000 });
    return cents;
  });
  expect([left, runs]).toEqual([900, 2]);
  expect((await accounts.findByKey('ada'))!.data.cents).toBe(900);
  expect((await records.findByKey('note'))!.seq).toBe((await accounts.findByKey('ada'))!.seq);
});

test('client: a transaction rolls back on a throw and has a maximum of attempts', async () => {
  const { db, people: records, server } = await people();
  await records.insertWithKey('a', { name: 'a', age: 0 });
  const boom = db.transaction(async (transaction) => {
    await records.insertWithKey('b', { name: 'b', age: 1 }, { transaction });
    throw new Error('boom');
  });
  await expect(boom).rejects.toThrow('boom');
  expect(await records.findByKey('b')).toBeUndefined();
  expect(server.database.transactions.size).toBe(0);
  let runs = 0;
  const never = db.transaction(
    async (transaction) => {
      await records.findByKey('a', { transaction });
      await records.upsert('a', { name: 'a', age: ++runs });
      await records.upsert('c', { name: 'c', age: 1 }, { transaction });
    },
    { tries: 3 },
  );
  expect((await refusalOf(never)).code).toBe('TX_CONFLICT');
  expect(runs).toBe(3);
});

test('client: a manual transaction can repeat its commit or roll back', async () => {
  const { db, people: records } = await people();
  const one = await db.begin();
  await records.insert({ name: 'x', age: 1 }, { transaction: one });
  const committed = await one.commit();
  expect(committed.operations).toBe(1);
  expect(await one.commit()).toEqual(committed);
  const two = await db.begin({ readOnly: true });
  expect(two.readSeq).toBe(committed.seq);
  const refused = await refusalOf(records.insert({ name: 'y', age: 1 }, { transaction: two }));
  expect(refused.code).toBe('TX_READ_ONLY');
  await two.rollback();
  expect((await refusalOf(records.count(undefined, { transaction: two }))).code).toBe('TX_CLOSED');
});

test('client: status, compact and backup', async () => {
  const {
    db,
    people: records,
    server,
  } = await people({
    collections: '{people: {indexes: [{fields: [age]}], default_ttl_ms: 3600000}}',
  });
  await records.insertWithKey('ada', { name: 'Ada', age: 36 });
  const status = await db.status({ includeCollections: true });
  expect(status).toMatchObject({ role: 'leader', state: 'leading', seq: 1, durability: 'full' });
  expect(status.collections).toMatchObject([
    { name: 'people', records: 1, defaultTtlMs: 3_600_000, indexes: [{ fields: ['age'] }] },
  ]);
  expect(await db.compact({ dryRun: true })).toMatchObject({ oldestSeq: 1 });
  const local = [];
  for await (const part of server.database.backup()) local.push(part.kind);
  const parts = [];
  for await (const part of db.backup()) parts.push(part);
  expect(parts.map(({ kind }) => kind)).toEqual(local);
  expect(parts[0]).toMatchObject({ kind: 'header', header: { seq: 1, format: 'snapshot' } });
  expect(parts.at(-1)).toMatchObject({ kind: 'trailer', trailer: { records: 1 } });
});

test('client: status reports the compaction that runs', async () => {
  const { db, people: records, server } = await people();
  await records.insertWithKey('ada', { name: 'Ada', age: 36 });
  let seen: CompactionStatus | undefined;
  const onStage = async (stage: string) => {
    if (stage === 'compare') seen ??= (await db.status()).compaction;
  };
  await server.database.compact({ onStage });
  const { totalRows } = seen!;
  expect(seen).toEqual({
    stage: 'compare',
    rows: totalRows / 2,
    totalRows,
    elapsedMs: expect.any(Number),
  });
  expect((await db.status()).compaction).toBeUndefined();
});

test('client: the Unix socket needs no key, the network does', async () => {
  const file = join(servers.makeDirectory(), 'keys.yaml');
  const scopes = '[{collections: "people", access: read}]';
  writeFileSync(file, `keys: [{id: r, secret_sha256: ${hashSecret('s3')}, scopes: ${scopes}}]`);
  const server = await servers.serve({ 'keys-file': file });
  const trusted = await servers.connect(server.socketUrl);
  await trusted.collection('people').insertWithKey('ada', { name: 'Ada' });
  const stranger = await servers.connect(server.url);
  expect((await refusalOf(stranger.collection('people').count())).code).toBe('MISSING_KEY');
  const reader = await servers.connect(server.url, { key: 'r.s3' });
  expect(await reader.collection('people').count()).toBe(1);
  expect(await refusalOf(reader.collection('people').insert({}))).toMatchObject({ code: 'SCOPE' });
});

test('client: TLS verifies the server certificate', async () => {
  const pem = (name: string) =>
    fileURLToPath(new URL(`../../../kit/test/outbound/self-signed.${name}.pem`, import.meta.url));
  const server = await servers.serve({ 'tls-cert': pem('cert'), 'tls-key': pem('key') });
  expect(server.url).toMatch(/^grpcs:/);
  const ca = readFileSync(pem('cert'));
  const db = await servers.connect(server.url, { tls: { ca } });
  expect(await db.collection('people').count()).toBe(0);
  const named = await servers.connect(server.url, {
    tls: { ca, serverName: 'hooks.example.test' },
  });
  expect(await named.collection('people').count()).toBe(0);
  const doubting = await servers.connect(server.url, { retry: false });
  expect((await refusalOf(doubting.collection('people').count())).code).toBe('UNAVAILABLE');
  const plain = await servers.connect(server.url.replace('grpcs', 'grpc'), { retry: false });
  expect((await refusalOf(plain.collection('people').count())).code).toBe('UNAVAILABLE');
});

test('client: an invalid address is refused', async () => {
  for (const url of ['http://x:1', 'grpc://', 'localhost:5433', 'grpc://h:99999', 'unix:', '']) {
    await expect(servers.connect(url), url).rejects.toThrow(
      /is not a database address|must be|lacks/,
    );
  }
});

test('client: close refuses calls and ends watches', async () => {
  const { db, people: records } = await people();
  const watch = records.watch();
  const next = watch.next();
  await records.insert({ name: 'a', age: 1 });
  await next;
  const waiting = watch.next();
  await db.close();
  await expect(waiting).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
  await expect(records.count()).rejects.toBeInstanceOf(Refusal);
  await db.close();
});
