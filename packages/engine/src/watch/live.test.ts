import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { refusalOf, useScratch } from '../../test/scratch.test-support.js';
import type { LiveResult } from './live.js';
import { settle, type Item } from './watch.test-support.js';

const scratch = useScratch();

async function openItems() {
  const db = await scratch.open();
  return { db, items: db.collection<Item>('items') };
}

async function next(query: AsyncIterator<LiveResult<Item>>): Promise<LiveResult<Item>> {
  const step = await query.next();
  expect(step.done ?? false).toBe(false);
  return step.value as LiveResult<Item>;
}

/** The keys of a result: all, then what is new, changed and gone. */
function keysOf({ records, added, changed, removed }: LiveResult<Item>): string {
  return [records, added, changed, removed]
    .map((list) => list.map(({ key }) => key).join(' '))
    .join(' | ');
}

describe('a live query', () => {
  test('gives the records that match, then the result after every commit that changes it', async () => {
    const { items } = await openItems();
    await items.insertWithKey('a', { n: 1 });
    await items.insertWithKey('b', { n: 20 });
    const query = items.live({ filter: { field: 'n', op: 'gte', value: 10 } });
    expect(keysOf(await next(query))).toBe('b | b |  | ');
    await items.insertWithKey('c', { n: 5 });
    await items.insertWithKey('d', { n: 30 });
    expect(keysOf(await next(query))).toBe('b d | d |  | ');
    await items.updateByKey('b', { n: 21 });
    expect(keysOf(await next(query))).toBe('b d |  | b | ');
    await items.updateByKey('b', { n: 1 });
    expect(keysOf(await next(query))).toBe('d |  |  | b');
    await items.updateByKey('a', { n: 11 });
    expect(keysOf(await next(query))).toBe('a d | a |  | ');
    await items.deleteByKey('d');
    const result = await next(query);
    expect(keysOf(result)).toBe('a |  |  | d');
    expect(result.records[0]?.data).toEqual({ n: 11 });
    await query.return?.();
  });

  test('over nothing is an empty result first', async () => {
    const { items } = await openItems();
    const query = items.live();
    expect(await next(query)).toEqual({ records: [], added: [], changed: [], removed: [], seq: 0 });
    await query.return?.();
  });

  test('takes the changes of one commit together', async () => {
    const { db, items } = await openItems();
    await items.insertWithKey('a', { n: 1 });
    const query = items.live();
    await next(query);
    const tx = db.transactions.begin();
    await items.deleteByKey('a', { transaction: tx });
    await items.insertWithKey('b', { n: 2 }, { transaction: tx });
    await items.insertWithKey('c', { n: 3 }, { transaction: tx });
    await db.transactions.commit(tx.id);
    expect(keysOf(await next(query))).toBe('b c | b c |  | a');
    await query.return?.();
  });

  test('keeps the order asked for', async () => {
    const { items } = await openItems();
    for (const [key, n] of [
      ['a', 3],
      ['b', 1],
      ['c', 2],
    ] as const) {
      await items.insertWithKey(key, { n });
    }
    const query = items.live({ orderBy: [{ field: 'n', desc: true }] });
    expect(keysOf(await next(query))).toBe('a c b | a c b |  | ');
    await items.updateByKey('b', { n: 9 });
    expect(keysOf(await next(query))).toBe('b a c |  | b | ');
    await query.return?.();
  });

  test('with a limit lets the next one in when one leaves', async () => {
    const { items } = await openItems();
    for (const [key, n] of [
      ['a', 1],
      ['b', 2],
      ['c', 3],
      ['d', 4],
    ] as const) {
      await items.insertWithKey(key, { n });
    }
    const query = items.live({ orderBy: [{ field: 'n' }], limit: 2 });
    expect(keysOf(await next(query))).toBe('a b | a b |  | ');
    await items.deleteByKey('a');
    expect(keysOf(await next(query))).toBe('b c | c |  | a');
    await items.updateByKey('d', { n: 40 });
    await items.updateByKey('c', { n: 0 });
    expect(keysOf(await next(query))).toBe('c b |  | c | ');
    await items.insertWithKey('e', { n: -1 });
    expect(keysOf(await next(query))).toBe('e c | e |  | b');
    await query.return?.();
  });

  test('restarts when the log was trimmed past it, and delivers the difference', async () => {
    const { db, items } = await openItems();
    await items.insertWithKey('a', { n: 1 });
    await items.insertWithKey('b', { n: 1 });
    const query = items.live();
    await next(query);
    await items.deleteByKey('a');
    await items.updateByKey('b', { n: 2 });
    await items.insertWithKey('c', { n: 3 });
    await db.trimLog(5);
    expect(keysOf(await next(query))).toBe('b c | c | b | a');
    await items.insertWithKey('d', {});
    expect(keysOf(await next(query))).toBe('b c d | d |  | ');
    await query.return?.();
  });

  test('ends with its signal and with the database', async () => {
    const { db, items } = await openItems();
    const controller = new AbortController();
    const [one, other] = [items.live({ signal: controller.signal }), items.live()];
    await Promise.all([next(one), next(other)]);
    const [waiting, closing] = [one.next(), next(other)];
    const refused = refusalOf(closing);
    await settle();
    controller.abort();
    expect((await waiting).done).toBe(true);
    await db.close();
    expect((await refused).code).toBe('SHUTTING_DOWN');
  });

  test('that is wrong is refused at once', async () => {
    const { items } = await openItems();
    expect(() => items.live({ filter: { field: '', op: 'eq', value: 1 } })).toThrow('BAD_FILTER');
    expect(() => items.live({ limit: -1 })).toThrow('BAD_REQUEST');
  });
});

test('folding the differences gives the result, which is what a find gives', async () => {
  const write = fc.tuple(fc.integer({ min: 0, max: 12 }), fc.integer({ min: -1, max: 6 }));
  await fc.assert(
    fc.asyncProperty(
      fc.array(write, { maxLength: 40 }),
      fc.constantFrom(0, 1, 3),
      async (writes, limit) => {
        const { db, items } = await openItems();
        const query = {
          filter: { field: 'n', op: 'gte', value: 2 },
          orderBy: [{ field: 'n', desc: true }],
          limit,
        } as const;
        const results = items.live(query);
        const folded = new Map<string, number>();
        const fold = ({ records, added, changed, removed }: LiveResult<Item>) => {
          for (const { key } of removed) expect(folded.delete(key)).toBe(true);
          for (const { key, rev } of added) {
            expect(folded.has(key)).toBe(false);
            folded.set(key, rev);
          }
          for (const { key, rev } of changed) {
            expect(folded.get(key)).toBeLessThan(rev);
            folded.set(key, rev);
          }
          expect(new Map(records.map(({ key, rev }) => [key, rev]))).toEqual(folded);
        };
        fold(await next(results));
        for (const [key, n] of writes) {
          if (n >= 0) await items.upsert(`k${key}`, { n });
          else await items.deleteByKey(`k${key}`).catch(() => undefined);
        }
        await items.upsert('last', { n: 99 });
        let last: LiveResult<Item>;
        do fold((last = await next(results)));
        while (last.seq < db.core.durable.seq);
        const found = await items.find({ ...query, limit: limit || 10_000 });
        expect(last.records.map(({ key }) => key)).toEqual(found.records.map(({ key }) => key));
        await results.return?.();
        await db.close();
      },
    ),
    { numRuns: 20 },
  );
});
