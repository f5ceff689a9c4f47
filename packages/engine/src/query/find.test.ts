import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../value/documents.js';
import { findAll } from './find-all.test-support.js';
import { find, type FindBatch } from './find.js';
import { idOf, imageOf, MemoryView, sourceOf } from './memory-view.test-support.js';
import { checkFind, type FindQuery } from './query.js';
import { Slice } from '../core/slice.js';

const rows = (...documents: JsonObject[]) => documents.map((data, n) => ({ id: idOf(n), data }));
const numbered = (count: number, more: JsonObject = {}) =>
  rows(...Array.from({ length: count }, (_, n) => ({ n, ...more })));

async function found(view: MemoryView, query: FindQuery, more = {}): Promise<JsonObject[]> {
  const { records } = await findAll(sourceOf(view, more), checkFind(query));
  return records.map(({ data }) => data);
}

describe('order', () => {
  test('is by id unless asked otherwise', async () => {
    const view = new MemoryView(numbered(3));
    expect(await found(view, {})).toEqual([{ n: 0 }, { n: 1 }, { n: 2 }]);
    const backwards = { orderBy: [{ field: '$id', desc: true }] };
    expect(await found(view, backwards)).toEqual([{ n: 2 }, { n: 1 }, { n: 0 }]);
  });

  test('goes over all types, a missing field before null', async () => {
    const inOrder = rows(
      {},
      { a: null },
      { a: false },
      { a: true },
      { a: 1 },
      { a: '' },
      { a: [] },
      { a: {} },
    );
    const shuffled = inOrder.map(({ data }, n) => ({ id: idOf((n * 3) % 8), data }));
    for (const indexes of [[], [{ fields: ['a'] }]]) {
      const view = new MemoryView(shuffled, indexes);
      expect(await found(view, { orderBy: [{ field: 'a' }] })).toEqual(inOrder.map((r) => r.data));
      const backwards = { orderBy: [{ field: 'a', desc: true }] };
      expect(await found(view, backwards)).toEqual(inOrder.map((r) => r.data).toReversed());
    }
  });

  test('has the growing id as the last tie-break, also when it descends', async () => {
    const view = new MemoryView(rows({ a: 1, n: 0 }, { a: 2, n: 1 }, { a: 1, n: 2 }));
    const query = { orderBy: [{ field: 'a', desc: true }], fields: ['n'] };
    expect(await found(view, query)).toEqual([{ n: 1 }, { n: 0 }, { n: 2 }]);
  });

  test('through an array goes by the smallest, or the largest when it descends', async () => {
    const list = (...values: number[]) => ({ list: values.map((v) => ({ v })) });
    const view = new MemoryView(rows(list(5, 9), list(1, 10), list(7), { list: [] }));
    const upwards = await found(view, { orderBy: [{ field: 'list.v' }] });
    expect(upwards).toEqual([{ list: [] }, list(1, 10), list(5, 9), list(7)]);
    const downwards = await found(view, { orderBy: [{ field: 'list.v', desc: true }] });
    expect(downwards).toEqual([list(1, 10), list(5, 9), list(7), { list: [] }]);
    const both = { orderBy: [{ field: 'list.v' }, { field: 'list.v', desc: true }] };
    expect(await found(new MemoryView(rows(list(1, 2), list(1, 3))), both)).toEqual([
      list(1, 3),
      list(1, 2),
    ]);
  });
});

describe('a page', () => {
  const view = new MemoryView(numbered(10));

  test('has at most the limit, and a cursor only when there are more', async () => {
    const first = await findAll(sourceOf(view), checkFind({ limit: 9 }));
    expect(first.records).toHaveLength(9);
    expect(first.nextCursor).not.toBe('');
    const second = await findAll(sourceOf(view), checkFind({ limit: 9, cursor: first.nextCursor }));
    expect(second.records.map(({ data }) => data)).toEqual([{ n: 9 }]);
    expect(second.nextCursor).toBe('');
    const exact = await findAll(sourceOf(view), checkFind({ limit: 10 }));
    expect([exact.records.length, exact.nextCursor]).toEqual([10, '']);
    const all = await findAll(sourceOf(view), checkFind({ limit: 0 }));
    expect([all.records.length, all.nextCursor]).toEqual([10, '']);
  });

  test('passes over what is to be skipped', async () => {
    expect(await found(view, { skip: 8 })).toEqual([{ n: 8 }, { n: 9 }]);
    expect(await found(view, { skip: 2, limit: 1 })).toEqual([{ n: 2 }]);
    expect(await found(view, { skip: 20 })).toEqual([]);
  });

  test('goes on behind its cursor when records came and went meanwhile', async () => {
    const orderBy = [{ field: 'n' }];
    for (const indexes of [[], [{ fields: ['n'] }]]) {
      const before = new MemoryView(rows({ n: 10 }, { n: 20 }, { n: 30 }, { n: 40 }), indexes);
      const { nextCursor } = await findAll(sourceOf(before), checkFind({ orderBy, limit: 2 }));
      const now = new MemoryView(rows({ n: 10 }, { n: 15 }, { n: 25 }, { n: 30 }), indexes);
      expect(await found(now, { orderBy, cursor: nextCursor })).toEqual([{ n: 25 }, { n: 30 }]);
    }
  });

  test('refuses a cursor that is not its own or too old', async () => {
    const { nextCursor: cursor } = await findAll(sourceOf(view), checkFind({ limit: 1 }));
    const other = { cursor, filter: { field: 'n', op: 'gt' as const, value: 1 } };
    await expect(found(view, other)).rejects.toThrow('BAD_CURSOR');
    await expect(found(view, { cursor: 'x' })).rejects.toThrow('BAD_CURSOR');
    const later = { now: 10_000 + 25 * 60 * 60 * 1000 };
    await expect(found(view, { cursor }, later)).rejects.toThrow('CURSOR_EXPIRED');
  });
});

test('only the fields asked for come back', async () => {
  const view = new MemoryView(rows({ a: { b: 1, c: 2 }, d: 3 }));
  expect(await found(view, { fields: ['a.b'] })).toEqual([{ a: { b: 1 } }]);
  expect(await found(view, { fields: ['$id', 'd'] })).toEqual([{ d: 3 }]);
  expect(await found(view, { fields: [] })).toEqual([{ a: { b: 1, c: 2 }, d: 3 }]);
});

test('a count tells all that match, whatever the page', async () => {
  const view = new MemoryView(numbered(10));
  const query = { filter: { field: 'n', op: 'gte' as const, value: 4 }, limit: 2, skip: 1 };
  const result = await findAll(sourceOf(view), checkFind({ ...query, countOnly: true }));
  expect(result).toMatchObject({ count: 6, records: [], nextCursor: '' });
  expect((await findAll(sourceOf(view), checkFind(query))).count).toBeUndefined();
});

test('records that have expired are not found', async () => {
  const expiring = numbered(4).map((record, n) => ({ ...record, expiresAt: [0, 5, 10, 11][n]! }));
  for (const indexes of [[], [{ fields: ['n'] }]]) {
    const view = new MemoryView(expiring, indexes);
    const filter = { field: 'n', op: 'gte' as const, value: 0 };
    expect(await found(view, { filter }, { now: 10 })).toEqual([{ n: 0 }, { n: 3 }]);
    const count = { countOnly: true };
    expect((await findAll(sourceOf(view, { now: 10 }), checkFind(count))).count).toBe(2);
  }
});

describe('batches', () => {
  async function batches(view: MemoryView, query: FindQuery = {}): Promise<FindBatch[]> {
    const all: FindBatch[] = [];
    for await (const batch of find(sourceOf(view), checkFind(query))) all.push(batch);
    return all;
  }

  test('have at most 256 records, and the last one has the end', async () => {
    const all = await batches(new MemoryView(numbered(600)));
    expect(all.map(({ records }) => records.length)).toEqual([256, 256, 88]);
    expect(all.map(({ end }) => end !== undefined)).toEqual([false, false, true]);
    expect(all[2]!.end).toMatchObject({ nextCursor: '', plan: { rowsReturned: 600 } });
    expect((await batches(new MemoryView(numbered(256)))).map((b) => b.records.length)).toEqual([
      256,
    ]);
    expect(await batches(new MemoryView([]))).toMatchObject([{ records: [], end: {} }]);
  });

  test('have at most 256 KiB unless one record is larger', async () => {
    const sizes = (all: FindBatch[]) => all.map(({ records }) => records.length);
    expect(
      sizes(await batches(new MemoryView(numbered(12, { text: 'x'.repeat(50_000) })))),
    ).toEqual([5, 5, 2]);
    const large = new MemoryView([]);
    const images = numbered(2, { text: 'x'.repeat(300_000) }).map(imageOf);
    const overlay = new Map(images.map((image) => [image.id, image]));
    const all: FindBatch[] = [];
    for await (const batch of find(sourceOf(large, { overlay }), checkFind({}))) all.push(batch);
    expect(sizes(all)).toEqual([1, 1]);
  });

  test('hold records that stay what they are while the find goes on', async () => {
    const [first, ...rest] = await batches(new MemoryView(numbered(600)));
    expect(rest).toHaveLength(2);
    expect(first!.records.map(({ image }) => image.data)).toEqual(
      numbered(256).map(({ data }) => data),
    );
    expect(first!.records.map(({ image }) => image.rev)).toEqual(Array(256).fill(1));
  });
});

test('a long find gives others their turn', async () => {
  let pauses = 0;
  let now = 0;
  const slice = new Slice({
    monotonic: () => now++,
    pause: () => {
      pauses++;
      return Promise.resolve();
    },
  });
  const nothing = { filter: { field: 'n', op: 'lt' as const, value: 0 } };
  const { plan } = await findAll(
    sourceOf(new MemoryView(numbered(5000)), { slice }),
    checkFind(nothing),
  );
  expect(pauses).toBeGreaterThan(10);
  expect(plan.elapsedMs).toBeGreaterThan(0);
});

describe('a query of the wrong shape', () => {
  test.each<[unknown, string]>([
    ['text', 'The query must be an object, not a string'],
    [{ limits: 5 }, 'has an unknown member "limits"; did you mean "limit"?'],
    [{ limit: -1 }, 'limit must be a whole number from 0 on, not -1'],
    [{ limit: 1.5 }, 'limit must be'],
    [{ skip: '5' }, 'skip must be a whole number from 0 on, not a string'],
    [{ orderBy: { field: 'a' } }, 'orderBy must be a list, not an object'],
    [{ orderBy: ['a'] }, 'orderBy[0] must be an object'],
    [{ orderBy: [undefined] }, 'orderBy[0] is missing'],
    [{ orderBy: [{ field: 'a', descending: true }] }, 'orderBy[0] has an unknown member'],
    [{ orderBy: [{ field: 'a', desc: 1 }] }, 'orderBy[0].desc must be true or false'],
    [{ orderBy: [{ field: '$create_at' }] }, 'did you mean "$created_at"?'],
    [{ orderBy: [{}] }, 'orderBy[0].field must be the path of a field, not nothing'],
    [
      { orderBy: Array.from({ length: 17 }, () => ({ field: 'a' })) },
      'orderBy has 17 items; the maximum is 16',
    ],
    [{ cursor: 5 }, 'cursor must be a text'],
    [{ fields: 'a' }, 'fields must be a list'],
    [{ fields: ['a', ''] }, 'fields[1] is empty'],
    [{ countOnly: 'yes' }, 'countOnly must be true or false'],
    [{ allowFullScan: 0 }, 'allowFullScan must be true or false'],
  ])('is refused: %j', (query, text) => {
    expect(() => checkFind(query)).toThrow('BAD_REQUEST: ');
    expect(() => checkFind(query)).toThrow(text);
  });

  test('has its filter refused as a filter', () => {
    expect(() => checkFind({ filter: { field: 'a', op: 'is', value: 1 } })).toThrow('BAD_FILTER');
  });
});
