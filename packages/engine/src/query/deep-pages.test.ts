import { expect, test } from 'vitest';
import type { IndexDefinition } from '../format/entries.js';
import { findAll } from './find-all.test-support.js';
import { idOf, MemoryView, sourceOf } from './memory-view.test-support.js';
import { checkFind, type FindQuery } from './query.js';

const count = 300;
const limit = 20;
const all = Array.from({ length: count }, (_, n) => ({
  id: idOf(n),
  data: { n, group: n % 3, kind: 'a' },
}));

/** Rows that each page read, from the first to the last. */
async function rowsByPage(indexes: IndexDefinition[], query: FindQuery): Promise<number[]> {
  const source = sourceOf(new MemoryView(all, indexes));
  const rows: number[] = [];
  let cursor = '';
  let found = 0;
  do {
    const page = await findAll(source, checkFind({ ...query, limit, cursor }));
    found += page.records.length;
    rows.push(page.plan.rowsScanned);
    cursor = page.nextCursor;
  } while (cursor);
  expect(found).toBe(count);
  return rows;
}

const kind = { field: 'kind', op: 'eq' as const, value: 'a' };

// An index is read in chunks, of at least 32 entries.
test.each<[string, IndexDefinition[], FindQuery, number]>([
  ['by id', [], {}, limit + 1],
  ['by id, descending', [], { orderBy: [{ field: '$id', desc: true }] }, limit + 1],
  ['in the order of an index', [{ fields: ['n'] }], { orderBy: [{ field: 'n' }] }, 32],
  [
    'in the order of an index, descending',
    [{ fields: ['n'] }],
    { orderBy: [{ field: 'n', desc: true }] },
    // The group that a chunk ends in is read again.
    64,
  ],
  [
    'with long groups of the same value',
    [{ fields: ['group'] }],
    { orderBy: [{ field: 'group', desc: true }] },
    96,
  ],
  [
    'by a filter and in the order of a compound index',
    [{ fields: ['kind', 'n'] }],
    { filter: kind, orderBy: [{ field: 'n' }] },
    32,
  ],
])('page %s: reads as few rows at any depth', async (_name, indexes, query, maxRows) => {
  const rows = await rowsByPage(indexes, query);
  expect(rows).toHaveLength(count / limit);
  expect(Math.max(...rows)).toBeLessThanOrEqual(maxRows);
});

test('page without an index of its order: reads the collection once, at any depth', async () => {
  const rows = await rowsByPage([], { orderBy: [{ field: 'n' }] });
  expect(new Set(rows)).toEqual(new Set([count]));
});

test('page after a large skip: reads what it passes over, and the next page does not', async () => {
  const source = sourceOf(new MemoryView(all, [{ fields: ['n'] }]));
  const query = { orderBy: [{ field: 'n' }], skip: 250, limit };
  const first = await findAll(source, checkFind(query));
  expect(first.plan.rowsScanned).toBeGreaterThanOrEqual(250);
  const next = await findAll(source, checkFind({ ...query, cursor: first.nextCursor }));
  expect(next.records[0]!.data).toMatchObject({ n: 250 + limit });
  expect(next.plan.rowsScanned).toBeLessThanOrEqual(32);
});
