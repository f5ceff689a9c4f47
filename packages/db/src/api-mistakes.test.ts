import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { codeOf, useDatabases } from './api-ways.test-support.js';

/* What a caller without types can get wrong is refused the same in process and on a server. */

describe.each(useDatabases())('by %s', (_, make) => {
  async function start() {
    const db = await make();
    return { db, things: db.collection('things') };
  }

  test('bulk: an operation that cannot be sent fails alone', async () => {
    const { things } = await start();
    const bad: [unknown, string][] = [
      [null, 'BAD_REQUEST'],
      [{}, 'BAD_REQUEST'],
      [{ insert: undefined }, 'BAD_REQUEST'],
      [{ replace: { data: {} } }, 'BAD_REQUEST'],
      [{ insert: { data: {} }, delete: { key: 'a' } }, 'BAD_REQUEST'],
      [{ insert: { data: 'text' } }, 'BAD_DATA'],
      [{ insert: { data: { at: new Map() } } }, 'BAD_DATA'],
      [{ insert: { data: { n: NaN } } }, 'BAD_DATA'],
      [{ insert: { data: {}, ttlMs: -1 } }, 'BAD_REQUEST'],
      [{ insert: { key: 5, data: {} } }, 'BAD_KEY'],
      [{ update: { key: 'a', data: {}, expectedRev: -1 } }, 'BAD_REQUEST'],
      [{ upsert: { key: 'a', data: {}, mode: 'patch' } }, 'BAD_REQUEST'],
    ];
    const good = { upsert: { key: 'a', data: { n: 1 } } };
    const list = [good, ...bad.map(([operation]) => operation), good] as (typeof good)[];
    const { results } = await things.bulkWrite(list);
    expect(results.map(({ status, error }) => error?.reason ?? status)).toEqual([
      'OK',
      ...bad.map(([, reason]) => reason),
      'OK',
    ]);
    expect(results[7]?.error?.message).toMatch(/^data at "at" is a Map/);
    const stopped = await things.bulkWrite(list.slice(6), { ordered: true });
    expect(stopped.results.map(({ status }) => status).slice(0, 2)).toEqual(['FAILED', 'NOT_RUN']);
    await expect(things.bulkWrite(list.slice(6), { atomic: true })).rejects.toMatchObject({
      code: 'BAD_DATA',
      detail: expect.stringMatching(/^operations\[0\]: /),
    });
    expect(await codeOf(things.bulkWrite(undefined as never))).toBe('BAD_REQUEST');
    expect(await codeOf(things.bulkWrite({} as never))).toBe('BAD_REQUEST');
  });

  test('mode: merges in every call that has it, in either case, and others are refused', async () => {
    const { db, things } = await start();
    const { id } = await things.insertWithKey('a', { n: 0 });
    await things.update(id, { b: 1 }, { mode: 'merge' });
    await things.updateByKey('a', { c: 1 }, { mode: 'MERGE' as never });
    await things.upsert('a', { d: 1 }, { mode: 'merge' });
    await things.updateIfRev({ key: 'a' }, 4, { e: 1 }, { mode: 'merge' });
    const operation = { update: { key: 'a', data: { f: 1, n: null }, mode: 'MERGE' as 'merge' } };
    await things.bulkWrite([operation]);
    expect((await things.findByKey('a'))?.data).toEqual({ b: 1, c: 1, d: 1, e: 1, f: 1 });
    for (const mode of ['patch', '', null, 1] as never[]) {
      expect(await codeOf(things.update(id, {}, { mode }))).toBe('BAD_REQUEST');
      expect(await codeOf(things.upsert('a', {}, { mode }))).toBe('BAD_REQUEST');
    }
    await things.upsert('a', { n: 1 }, { mode: 'replace' });
    expect((await things.findByKey('a'))?.data).toEqual({ n: 1 });

    const strict = db.collection('strict', z.object({ a: z.number(), b: z.number().optional() }));
    await strict.upsert('s', { a: 1, b: 2 });
    await strict.upsert('s', { a: 3, b: null } as never, { mode: 'merge' });
    expect((await strict.findByKey('s'))?.data).toEqual({ a: 3 });
    const merging = (rev: number) =>
      strict.updateIfRev({ key: 's' }, rev, { b: 4 } as never, { mode: 'merge' });
    expect(await codeOf(merging(1))).toBe('REV_MISMATCH');
    expect(await merging(2)).toMatchObject({ rev: 3, data: { a: 3, b: 4 } });
    const adding = strict.updateIfRev({ key: 's' }, 3, { $set: { b: 'x' } } as never);
    expect(await codeOf(adding)).toBe('SCHEMA_VIOLATION');
  });

  test('bulk: a document that does not match a Standard Schema fails alone', async () => {
    const { db } = await start();
    const people = db.collection('people', z.object({ name: z.string() }));
    const operations = [
      { insert: { data: { name: 'Ada' } } },
      { insert: { data: { name: 5 } as never } },
      { upsert: { key: 'b', data: { name: 'Bob' } } },
    ];
    const { results } = await people.bulkWrite(operations);
    expect(results.map(({ status, error }) => error?.reason ?? status)).toEqual([
      'OK',
      'SCHEMA_VIOLATION',
      'OK',
    ]);
    expect(await codeOf(people.bulkWrite(operations, { atomic: true }))).toBe('SCHEMA_VIOLATION');
    expect(await people.count()).toBe(2);
  });

  test('updateMany: a missing filter or a bad limit changes nothing', async () => {
    const { db, things } = await start();
    const people = db.collection('people', z.object({ name: z.string() }));
    await people.insert({ name: 'Ada' });
    for (const records of [people, things as unknown as typeof people]) {
      const none = records.updateMany(undefined as never, { name: 'X' });
      expect(await codeOf(none)).toBe('BAD_REQUEST');
      const negative = records.updateMany({}, { name: 'X' }, { limit: -1 });
      expect(await codeOf(negative)).toBe('BAD_REQUEST');
      await expect(records.updateMany({}, 'text' as never)).rejects.toMatchObject({
        code: 'BAD_DATA',
        detail: 'patch must be a JSON object, not a string.',
      });
    }
    expect((await people.findOne())?.data).toEqual({ name: 'Ada' });
  });

  test('options: a misspelt one is refused, and nothing is written', async () => {
    const { things } = await start();
    const { id } = await things.insertWithKey('a', { n: 0 });
    await things.insert({ n: 0 });
    for (const call of [
      () => things.updateMany({}, { n: 1 }, { limt: 1 } as never),
      () => things.deleteMany({}, { Limit: 1 } as never),
      () => things.bulkWrite([{ delete: { key: 'a' } }], { atomc: true } as never),
      () => things.update(id, { n: 1 }, { ttl: 5 } as never),
      () => things.findById(id, { fieds: ['n'] } as never),
      () => things.count({}, { minseq: 1 } as never),
    ]) {
      await expect(call()).rejects.toMatchObject({
        code: 'BAD_REQUEST',
        detail: expect.stringMatching(/^There is no option "/),
      });
    }
    await expect(things.updateMany({}, { n: 1 }, { limt: 1 } as never)).rejects.toMatchObject({
      detail: 'There is no option "limt"; did you mean "limit"?',
    });
    expect(await things.count({ n: 0 }, { timeoutMs: 5_000 } as never)).toBe(2);
  });

  test('queries: a text in place of a list, and a bigint, are refused', async () => {
    const { things } = await start();
    await things.insert({ name: 'x' });
    expect(await codeOf(things.find({ fields: 'name' as never }))).toBe('BAD_REQUEST');
    expect(await codeOf(things.find({ orderBy: 'name' as never }))).toBe('BAD_REQUEST');
    expect(await codeOf(things.findByKey('k', { fields: 'name' as never }))).toBe('BAD_REQUEST');
    expect(await codeOf(things.find({ filter: { n: 1n as never } }))).toBe('BAD_FILTER');
    expect(await codeOf(things.updateIfRev({ key: 'k' }, -1, {}))).toBe('BAD_REQUEST');
  });

  test('queries: unknown members and values of a wrong type are refused, never left out', async () => {
    const { things } = await start();
    await things.insert({ n: 1, at: '2024-01-01T00:00:00Z' });
    const trunc = { field: 'at', unit: 'day' };
    const wrong: object[] = [
      { groupBy: [{ dateTrunc: { ...trunc, timezone: 'Asia/Tokyo' }, as: 'd' }] },
      { groupBy: [{ dateTrunc: { ...trunc, unit: 5 }, as: 'd' }] },
      { groupBy: [{ dateTrunc: null, as: 'd' }] },
      { groupBy: [{ bucket: { field: 'n', edges: [0, 5], step: 1 } }] },
      { groupBy: [{ bucket: { field: 'n', edges: 5 } }] },
      { groupBy: [5] },
      { aggregates: [{ name: 'a', op: 'sum', fild: 'n' }] },
    ];
    for (const query of wrong) {
      expect(await codeOf(things.aggregate(query)), JSON.stringify(query)).toBe('BAD_REQUEST');
    }
    const find: object[] = [
      { search: { text: 5 } },
      { search: { text: 'x', fields: [5] } },
      { near: {} },
      { near: { field: 'v', vector: null } },
      { lookup: { from: 5, local: 'n', foreign: 'n', as: 'j' } },
      { fields: [5] },
    ];
    for (const query of find) {
      expect(await codeOf(things.find(query)), JSON.stringify(query)).toBe('BAD_REQUEST');
    }
    expect(await codeOf(things.distinct(5 as never))).toBe('BAD_REQUEST');
    const invalid = new Date(NaN);
    for (const filter of [{ at: invalid }, { at: { gt: invalid } }, { at: { in: [invalid] } }]) {
      expect(await codeOf(things.count(filter))).toBe('BAD_FILTER');
    }
  });

  test('updates: an address that names no record, and values that JSON does not have', async () => {
    const { things } = await start();
    await things.insertWithKey('a', { list: [] });
    for (const address of [5, null, {}, { ky: 'a' }] as never[]) {
      expect(await codeOf(things.update(address, { $set: { n: 1 } }))).toBe('BAD_REQUEST');
      expect(await codeOf(things.updateIfRev(address, 1, { n: 1 }))).toBe('BAD_REQUEST');
    }
    const update = (operators: object) => codeOf(things.update({ key: 'a' }, operators));
    expect(await update({ $set: { n: NaN } })).toBe('BAD_UPDATE');
    expect(await update({ $push: { list: { $each: [1] } } })).toBe('BAD_UPDATE');
    expect(await update({ $addToSet: { list: { $each: [1] } } })).toBe('BAD_UPDATE');
    const each = things.update({ key: 'a' }, { $push: { list: { $slice: 1 } } });
    await expect(each).rejects.toThrow('write it without "$": slice');
    const bytes = await things.update({ key: 'a' }, { $push: { list: { $bytes: 'AQ==' } } });
    expect(bytes.data).toEqual({ list: [{ $bytes: 'AQ==' }] });
  });

  test('live: what it does not honour is refused', async () => {
    const { things } = await start();
    for (const query of [{ skip: 1 }, { fields: ['n'] }, { projection: {} }, { search: 'x' }]) {
      const [name] = Object.keys(query);
      expect(() => things.live(query as object)).toThrow(`There is no option "${name}"`);
    }
    expect(() => things.live({ limt: 1 } as object)).toThrow('did you mean "limit"?');
  });

  test('indexes: definitions with unknown members or values of a wrong type', async () => {
    const { db } = await start();
    const wrong: unknown[] = [
      null,
      'n',
      {},
      { fields: 'n' },
      { fields: [5] },
      { fields: ['n'], uniq: true },
      { search: ['t'], lang: 'en' },
      { search: ['t'], language: 5 },
      { vector: 5, dims: 2 },
      { vector: 'v', dims: '2' },
      { vector: 'v', dims: 2, metric: null },
    ];
    for (const definition of wrong) {
      const made = db.catalog.createIndex('things', definition as never);
      expect(await codeOf(made), JSON.stringify(definition)).toBe('BAD_REQUEST');
    }
    await db.catalog.createIndex('things', { search: ['t'] });
    const [things] = await db.collections();
    expect(things?.indexes[0]).toMatchObject({ name: 'search:t', language: 'none' });
  });
});
