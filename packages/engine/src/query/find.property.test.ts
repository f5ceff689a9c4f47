import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  document,
  filter,
  hardCase,
  indexes,
  orderBy,
  records,
} from './arbitraries.test-support.js';
import { campaignSize } from '../../../../test/support/campaign.js';
import { findAll } from './find-all.test-support.js';
import {
  idOf,
  imageOf,
  MemoryView,
  sourceOf,
  type TestRecord,
} from './memory-view.test-support.js';
import { modelFind } from './model.test-support.js';
import { checkFind, type FindQuery } from './query.js';
import type { QuerySource } from './source.js';

const numRuns = Number(
  process.env['MILLRACE_PROPERTY_RUNS'] ?? campaignSize({ quick: 150, full: 600 }),
);

async function idsFound(source: QuerySource, query: FindQuery): Promise<string[]> {
  const { records: found } = await findAll(source, checkFind(query));
  return found.map(({ image }) => image.id);
}

test('whatever indexes there are, a find gives what reading everything would', async () => {
  await fc.assert(
    fc.asyncProperty(records, indexes, filter, orderBy, async (all, definitions, where, order) => {
      const source = sourceOf(new MemoryView(all, definitions));
      const found = await idsFound(source, { filter: where, orderBy: order });
      expect(found).toEqual(modelFind(all, where, order));
      const { count } = await findAll(source, checkFind({ filter: where, countOnly: true }));
      expect(count).toBe(found.length);
    }),
    { numRuns },
  );
});

test('an index loses nothing to arrays and to texts that are cut', async () => {
  await fc.assert(
    fc.asyncProperty(
      hardCase,
      async ({ records: all, filter: where, indexes: some, orderBy: by }) => {
        const source = sourceOf(new MemoryView(all, some));
        const query = { filter: where, orderBy: by };
        expect(await idsFound(source, query)).toEqual(modelFind(all, where, by));
        const { count } = await findAll(source, checkFind({ filter: where, countOnly: true }));
        expect(count).toBe(modelFind(all, where, by).length);
        const first = await findAll(source, checkFind({ ...query, limit: 1 }));
        if (!first.nextCursor) return;
        const rest = await idsFound(source, { ...query, cursor: first.nextCursor });
        expect(rest).toEqual(modelFind(all, where, by).slice(1));
      },
    ),
    { numRuns: numRuns * 2 },
  );
});

test('an index that is not ready changes nothing', async () => {
  await fc.assert(
    fc.asyncProperty(records, indexes, filter, async (all, definitions, where) => {
      const view = new MemoryView(all, definitions);
      for (const index of view.indexes) index.state = 'building';
      view.entries = () => {
        throw new Error('read');
      };
      expect(await idsFound(sourceOf(view), { filter: where })).toEqual(modelFind(all, where, []));
    }),
    { numRuns: numRuns / 5 },
  );
});

test('pages by cursor put together are the whole', async () => {
  const page = fc.integer({ min: 1, max: 4 });
  const skip = fc.integer({ min: 0, max: 3 });
  await fc.assert(
    fc.asyncProperty(
      fc.tuple(records, indexes, filter, orderBy, page, skip),
      async ([all, definitions, where, order, limit, passed]) => {
        const source = sourceOf(new MemoryView(all, definitions));
        const found: string[] = [];
        let cursor: string | undefined;
        do {
          const query = { filter: where, orderBy: order, limit, skip: passed, cursor };
          const { records: some, nextCursor } = await findAll(source, checkFind(query));
          expect(some.length).toBeLessThanOrEqual(limit);
          found.push(...some.map(({ image }) => image.id));
          cursor = nextCursor;
          if (cursor) expect(some).toHaveLength(limit);
        } while (cursor);
        expect(found).toEqual(modelFind(all, where, order).slice(passed));
      },
    ),
    { numRuns },
  );
});

test('a transaction finds what it would find if its writes were in the file', async () => {
  const writes = fc.array(
    fc.record({ n: fc.integer({ min: 0, max: 14 }), data: fc.option(document) }),
    { maxLength: 6 },
  );
  await fc.assert(
    fc.asyncProperty(
      fc.tuple(records, indexes, filter, orderBy, writes, fc.integer({ min: 1, max: 5 })),
      async ([all, definitions, where, order, changes, limit]) => {
        const applied = new Map<string, TestRecord>(all.map((record) => [record.id, record]));
        const overlay = new Map();
        for (const { n, data } of changes) {
          const id = idOf(n);
          const record = data && { id, data, rev: 2, key: n % 2 ? `a${n}` : '' };
          overlay.set(id, record && imageOf(record));
          if (record) applied.set(id, record);
          else applied.delete(id);
        }
        const source = sourceOf(new MemoryView(all, definitions), { overlay });
        const expected = modelFind([...applied.values()], where, order);
        const query = { filter: where, orderBy: order };
        expect(await idsFound(source, query)).toEqual(expected);

        const first = await findAll(source, checkFind({ ...query, limit }));
        expect(first.records.map(({ image }) => image.id)).toEqual(expected.slice(0, limit));
        const rest = { ...query, cursor: first.nextCursor };
        if (first.nextCursor) expect(await idsFound(source, rest)).toEqual(expected.slice(limit));
        else expect(expected.length).toBeLessThanOrEqual(limit);

        const { count } = await findAll(source, checkFind({ ...query, countOnly: true, limit }));
        expect(count).toBe(expected.length);
      },
    ),
    { numRuns },
  );
});

test('long walks through few values keep the order, page by page', async () => {
  const all = Array.from({ length: 400 }, (_, n) => ({
    id: idOf(n),
    data: { a: n % 3, b: (n * 7) % 50, c: n % 2 === 0 ? n : `t${n}` },
  }));
  const definitions = [
    { fields: ['a'] },
    { fields: ['a', 'b'] },
    { fields: ['c'] },
    { fields: ['b'], sparse: true },
  ];
  const queries: FindQuery[] = [
    { orderBy: [{ field: 'a', desc: true }] },
    {
      orderBy: [
        { field: 'a', desc: true },
        { field: '$id', desc: true },
      ],
    },
    { orderBy: [{ field: 'a' }] },
    {
      orderBy: [
        { field: 'a', desc: true },
        { field: 'b', desc: true },
      ],
    },
    { orderBy: [{ field: 'a' }, { field: 'b', desc: true }] },
    { orderBy: [{ field: 'b', desc: true }], filter: { field: 'a', op: 'eq', value: 1 } },
    { orderBy: [{ field: 'c', desc: true }] },
    { filter: { field: 'b', op: 'between', value: [10, 20] } },
    { filter: { field: 'b', op: 'gt', value: 40 }, orderBy: [{ field: 'b', desc: true }] },
    { filter: { field: 'a', op: 'in', value: [2, 0] }, orderBy: [{ field: 'a', desc: true }] },
  ];
  for (const query of queries) {
    const source = sourceOf(new MemoryView(all, definitions));
    const expected = modelFind(all, query.filter ?? {}, query.orderBy ?? []);
    expect(await idsFound(source, query)).toEqual(expected);
    for (const limit of [1, 33, 100]) {
      const found: string[] = [];
      let cursor = '';
      do {
        const page = await findAll(source, checkFind({ ...query, limit, cursor }));
        found.push(...page.records.map(({ image }) => image.id));
        cursor = page.nextCursor;
      } while (cursor);
      expect(found, JSON.stringify(query)).toEqual(expected);
    }
  }
});
