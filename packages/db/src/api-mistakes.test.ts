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
    const merging = strict.updateIfRev({ key: 's' }, 2, { a: 1 }, { mode: 'merge' });
    expect(await codeOf(merging)).toBe('BAD_REQUEST');
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

  test('queries: a text in place of a list, and a bigint, are refused', async () => {
    const { things } = await start();
    await things.insert({ name: 'x' });
    expect(await codeOf(things.find({ fields: 'name' as never }))).toBe('BAD_REQUEST');
    expect(await codeOf(things.find({ orderBy: 'name' as never }))).toBe('BAD_REQUEST');
    expect(await codeOf(things.findByKey('k', { fields: 'name' as never }))).toBe('BAD_REQUEST');
    expect(await codeOf(things.find({ filter: { n: 1n as never } }))).toBe('BAD_FILTER');
    expect(await codeOf(things.updateIfRev({ key: 'k' }, -1, {}))).toBe('BAD_REQUEST');
  });
});
