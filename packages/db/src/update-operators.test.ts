import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { codeOf, useDatabases } from './api-ways.test-support.js';
import { useServers } from './client/server.test-support.js';
import { date } from './index.js';

interface Order {
  n?: number;
  name: string;
  at?: string;
  tags?: string[];
  items?: { sku: string; qty: number }[];
}

describe.each(useDatabases())('%s: update operators', (_way, start) => {
  test('change a record by its id or key, in one revision', async () => {
    const orders = (await start()).collection<Order>('orders');
    const { id } = await orders.insertWithKey('a', { name: 'Ada', items: [{ sku: 'x', qty: 1 }] });
    const changed = await orders.update(id, {
      $inc: { n: 2, 'items.0.qty': 4 },
      $push: { tags: { each: ['b', 'a'], sort: 1 } },
      $currentDate: { at: true },
    });
    expect(changed).toMatchObject({ rev: 2, data: { n: 2, tags: ['a', 'b'] } });
    expect(changed.data.items).toEqual([{ sku: 'x', qty: 5 }]);
    expect(Date.parse(changed.data.at!)).toBeGreaterThan(0);
    const again = await orders.update({ key: 'a' }, { $unset: ['at', 'n'], $set: { name: 'B' } });
    expect(again.data).toEqual({ name: 'B', tags: ['a', 'b'], items: [{ sku: 'x', qty: 5 }] });
    const pulled = await orders.updateByKey('a', { $pull: { items: { qty: { gt: 3 } } } });
    expect(pulled.data.items).toEqual([]);
  });

  test('are refused as a whole, and nothing is written', async () => {
    const orders = (await start()).collection('orders');
    const { id } = await orders.insert({ name: 'Ada', n: 1 });
    expect(await codeOf(orders.update(id, { $inc: { n: 1, name: 1 } }))).toBe('TYPE_MISMATCH');
    expect(await codeOf(orders.update(id, { $incr: { n: 1 } }))).toBe('BAD_UPDATE');
    expect(await codeOf(orders.update(id, { $set: { n: 1 }, $inc: { n: 1 } }))).toBe('BAD_UPDATE');
    await expect(orders.update(id, { $incr: { n: 1 } })).rejects.toThrow('did you mean "$inc"');
    expect(await codeOf(orders.updateIfRev({ id }, 9, { $inc: { n: 1 } }))).toBe('REV_MISMATCH');
    expect(await codeOf(orders.updateMany({}, { $inc: { name: 1 } }))).toBe('TYPE_MISMATCH');
    expect(await orders.findById(id)).toMatchObject({ rev: 1, data: { name: 'Ada', n: 1 } });
    expect(await orders.updateIfRev({ id }, 1, { $inc: { n: 1 } })).toMatchObject({ rev: 2 });
  });

  test('are never stored as a document', async () => {
    const orders = (await start()).collection('orders');
    expect(await codeOf(orders.insert({ $set: { a: 1 } }))).toBe('BAD_DATA');
    expect(await codeOf(orders.insertMany([{ $x: 1 }]))).toBe('BAD_DATA');
    const { id } = await orders.insert({ a: { $inner: 1 } });
    expect(await codeOf(orders.merge(id, { $inc: { a: 1 } }))).toBe('BAD_DATA');
    const { results } = await orders.bulkWrite([{ upsert: { key: 'k', data: { $inc: {} } } }]);
    expect(results[0]?.error?.reason).toBe('BAD_DATA');
  });

  test('work in bulk, in updateMany, in an upsert and in a transaction', async () => {
    const db = await start();
    const orders = db.collection<Order>('orders');
    const { record, created } = await orders.upsert('a', { $set: { name: 'A' }, $inc: { n: 1 } });
    expect([record.data, created]).toEqual([{ name: 'A', n: 1 }, true]);
    await orders.bulkWrite([
      { update: { key: 'a', update: { $mul: { n: 10 } } } },
      { upsert: { key: 'b', update: { $max: { n: 7 } } } },
    ]);
    const both = { data: { name: 'x' }, update: { $inc: { n: 1 } } };
    const { results } = await orders.bulkWrite([{ update: { key: 'a', ...both } }]);
    expect(results[0]?.error?.reason).toBe('BAD_REQUEST');
    expect(await orders.updateMany({ n: { gt: 8 } }, { $inc: { n: 1 } })).toMatchObject({
      matched: 1,
      changed: 1,
    });
    expect(await orders.updateMany({}, { $min: { n: 100 } })).toMatchObject({ changed: 0 });
    await db.transaction(async (tx) => {
      await tx.collection(orders).update({ key: 'b' }, { $addToSet: { tags: 'x' } });
      await tx.collection(orders).updateMany({ tags: { contains: 'x' } }, { $inc: { n: 1 } });
    });
    const { records } = await orders.find({ orderBy: { n: 'asc' } });
    expect(records.map(({ data }) => data)).toEqual([
      { n: 8, tags: ['x'] },
      { name: 'A', n: 11 },
    ]);
  });

  test('are validated by a schema after they are applied', async () => {
    const db = await start();
    const schema = z.object({ n: z.number().max(2) });
    const counters = db.collection('counters', schema);
    await counters.insertWithKey('a', { n: 1 });
    expect((await counters.update({ key: 'a' }, { $inc: { n: 1 } })).data).toEqual({ n: 2 });
    const over = counters.update({ key: 'a' }, { $inc: { n: 1 } });
    expect(await codeOf(over)).toBe('SCHEMA_VIOLATION');
    await db.schemas.set('counters', { properties: { n: { maximum: 3 } } });
    const plain = db.collection<{ n: number }>('counters');
    await plain.update({ key: 'a' }, { $inc: { n: 1 } });
    expect(await codeOf(plain.updateMany({}, { $inc: { n: 1 } }))).toBe('SCHEMA_VIOLATION');
    expect((await plain.findByKey('a'))?.data).toEqual({ n: 3 });
  });

  test('of many callers are all applied', async () => {
    const counters = (await start()).collection<{ n: number }>('counters');
    await counters.insertWithKey('a', { n: 0 });
    const calls = Array.from({ length: 64 }, () =>
      counters.update({ key: 'a' }, { $inc: { n: 1 } }),
    );
    await Promise.all(calls);
    expect((await counters.findByKey('a'))?.data.n).toBe(64);
  });

  test('times and bytes: are stored in JSON forms that filters compare with', async () => {
    const files = (await start()).collection('files');
    const raw = new Uint8Array([1, 2, 255]);
    await files.insert({ at: date('2024-05-01T02:00:00+02:00'), raw });
    await files.insert({ at: new Date('2023-01-01T00:00:00Z'), raw: new Uint8Array([3]) });
    const [first] = (await files.find({ filter: { raw } })).records;
    expect(first?.data).toEqual({ at: '2024-05-01T00:00:00.000Z', raw: { $bytes: 'AQL/' } });
    expect(await files.count({ at: { gt: new Date('2024-01-01') } })).toBe(1);
    expect(await files.count({ at: new Date('2023-01-01T00:00:00Z') })).toBe(1);
    expect(await files.count({ field: 'at', op: 'lt', value: date(new Date()) })).toBe(2);
    expect(await files.count({ $created_at: { lt: new Date(0) } })).toBe(0);
    expect(await files.count({ raw: { in: [raw, { $bytes: 'Aw==' }] } })).toBe(2);
  });
});

describe('REST: update operators', () => {
  const servers = useServers();

  test('PATCH, bulk and updateMany take update in place of data', async () => {
    const { listeners } = await servers.serve();
    const base = listeners.find(({ listener }) => listener === 'http')!.url;
    const call = async (method: string, path: string, body: object) => {
      const headers = { 'content-type': 'application/json' };
      const reply = await fetch(`${base}/v1/${path}`, {
        method,
        headers,
        body: JSON.stringify(body),
      });
      return [reply.status, await reply.json()] as [number, any];
    };
    await call('POST', 'c/keys', { key: 'a', data: { n: 1, name: 'x' } });
    const update = { $inc: { n: 1 } };
    const [, found] = await call('PATCH', 'c/keys/a', { update });
    expect(found.record.data).toEqual({ n: 2, name: 'x' });
    expect((await call('PATCH', `c/records/${found.record.id}`, { update }))[0]).toBe(200);
    const reasonOf = ([status, body]: [number, any]) => [status, body.details[0].reason, body.code];
    expect(reasonOf(await call('PATCH', 'c/keys/a', { update: { $inc: { name: 1 } } }))).toEqual([
      422,
      'TYPE_MISMATCH',
      3,
    ]);
    expect(reasonOf(await call('PATCH', 'c/keys/a', { update: { n: 1 } }))[1]).toBe('BAD_UPDATE');
    expect((await call('PATCH', 'c/keys/a', { update, data: {} }))[0]).toBe(400);
    expect((await call('PATCH', 'c/keys/a', {}))[0]).toBe(400);
    expect((await call('PUT', 'c/keys/a', { update }))[0]).toBe(400);
    expect((await call('PATCH', 'c/keys/a', { data: update }))[0]).toBe(400);
    const operations = [{ update: { key: 'a', update } }];
    expect((await call('POST', 'c/records:bulk', { operations }))[1].results[0].status).toBe('OK');
    const many = await call('POST', 'c/records:updateMany', { filter: {}, update });
    expect(many).toEqual([200, { matched: 1, changed: 1, seq: 5 }]);
    const [, rev] = await call('POST', 'c/keys/a:updateIfRev', { expected_rev: 5, update });
    expect(rev.record).toMatchObject({ rev: 6, data: { n: 6, name: 'x' } });
  });
});
