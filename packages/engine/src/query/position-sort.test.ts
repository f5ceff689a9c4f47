import { mkdtempSync, openSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { campaignSize } from '../../../../test/support/campaign.js';
import { filter, orderBy, records } from './arbitraries.test-support.js';
import { findAll } from './find-all.test-support.js';
import { find } from './find.js';
import { idOf, MemoryView, sourceOf } from './memory-view.test-support.js';
import { modelFind } from './model.test-support.js';
import { checkFind, type FindQuery } from './query.js';
import { SortSpace, SpillFile, type Block } from '../storage/sort-space.js';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'millrace-sort-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** Counts what is written, and which files are open. */
class CountingSpace extends SortSpace {
  readonly blocks: number[] = [];
  open = 0;

  constructor(maxBytes: number) {
    super(directory, maxBytes);
  }

  override openFile(): SpillFile {
    const file = super.openFile();
    const [write, close] = [file.write.bind(file), file.close.bind(file)];
    this.open++;
    file.write = (items): Block => {
      this.blocks.push(items.length);
      return write(items);
    };
    file.close = () => {
      this.open--;
      close();
    };
    return file;
  }
}

const byRank = { orderBy: [{ field: 'rank' }] };
const shuffled = (count: number, text = '') =>
  Array.from({ length: count }, (_, n) => ({
    id: idOf(n),
    data: { rank: (n * 7_919) % count, text: `${text}${(n * 31) % 7}` },
  }));

async function ranks(space: SortSpace, count: number, query: FindQuery): Promise<unknown[]> {
  const source = sourceOf(new MemoryView(shuffled(count)), { sortSpace: space });
  const found = await findAll(source, checkFind(query));
  return found.records.map(({ data }) => data['rank']);
}

test('sort: gives the same records in the same order however little memory it has', async () => {
  await fc.assert(
    fc.asyncProperty(records, filter, orderBy, fc.nat(8), async (all, where, order, limit) => {
      const space = new SortSpace(directory, 3_000);
      const source = sourceOf(new MemoryView(all), { sortSpace: space });
      const expected = modelFind(all, where, order);
      const whole = await findAll(source, checkFind({ filter: where, orderBy: order }));
      expect(whole.records.map(({ image }) => image.id)).toEqual(expected);
      const query = { filter: where, orderBy: order, skip: 1, limit: limit + 1 };
      const page = await findAll(source, checkFind(query));
      expect(page.records.map(({ image }) => image.id)).toEqual(expected.slice(1, limit + 2));
    }),
    {
      numRuns: Number(
        process.env['MILLRACE_PROPERTY_RUNS'] ?? campaignSize({ quick: 60, full: 200 }),
      ),
    },
  );
});

test('sort: merges many runs, in several levels', async () => {
  const space = new CountingSpace(4 * 1_000);
  const expected = Array.from({ length: 3_000 }, (_, n) => n);
  expect(await ranks(space, 3_000, byRank)).toEqual(expected);
  // A run has a few positions; the first level alone makes hundreds of them.
  expect(space.blocks.length).toBeGreaterThan(500);
  expect(Math.max(...space.blocks)).toBeLessThan(1_000);
  const descending = { orderBy: [{ field: 'rank', desc: true }] };
  expect(await ranks(space, 3_000, descending)).toEqual(expected.toReversed());
});

test('sort: a small page needs no file, however many records there are', async () => {
  const space = new CountingSpace(4 * 10_000);
  expect(await ranks(space, 3_000, { ...byRank, skip: 5, limit: 3 })).toEqual([5, 6, 7]);
  expect(space.blocks).toEqual([]);
});

test('sort: a page that exceeds the memory goes on in the file', async () => {
  const space = new CountingSpace(4 * 1_000);
  const page = await ranks(space, 3_000, { ...byRank, skip: 1_000, limit: 3 });
  expect(page).toEqual([1_000, 1_001, 1_002]);
  expect(space.blocks.length).toBeGreaterThan(0);
});

test('sort: pages by cursor give every record once', async () => {
  const space = new CountingSpace(4 * 1_000);
  const source = sourceOf(new MemoryView(shuffled(500)), { sortSpace: space });
  const found: unknown[] = [];
  let cursor = '';
  do {
    const page = await findAll(source, checkFind({ ...byRank, limit: 70, cursor }));
    found.push(...page.records.map(({ data }) => data['rank']));
    cursor = page.nextCursor;
  } while (cursor);
  expect(found).toEqual(Array.from({ length: 500 }, (_, n) => n));
});

test('sort: counts long values, so that few of them are in memory', async () => {
  const space = new CountingSpace(4 * 100_000);
  const view = new MemoryView(shuffled(40, 'x'.repeat(20_000)));
  const order = { orderBy: [{ field: 'text' }] };
  const { records: found } = await findAll(sourceOf(view, { sortSpace: space }), checkFind(order));
  expect(found).toHaveLength(40);
  expect(space.blocks.length).toBeGreaterThan(10);
});

test('sort: leaves no file behind, also when it is abandoned', async () => {
  const space = new CountingSpace(4 * 1_000);
  const source = sourceOf(new MemoryView(shuffled(2_000)), { sortSpace: space });
  for await (const batch of find(source, checkFind(byRank))) {
    expect(batch.records.length).toBeGreaterThan(0);
    expect(space.open).toBe(1);
    expect(readdirSync(directory)).toEqual([]);
    break;
  }
  expect(space.open).toBe(0);
  expect(space.share).toBe(1_000);
});

test('sort: the sorts of a database share its memory', () => {
  const space = new SortSpace(directory, 8_000);
  expect(space.share).toBe(2_000);
  const leave = Array.from({ length: 8 }, () => space.enter());
  expect(space.share).toBe(1_000);
  for (const each of leave) each();
  expect(space.share).toBe(2_000);
});

test('sort: a full disk is DISK_FULL, with advice', async () => {
  class FullSpace extends SortSpace {
    override openFile(): SpillFile {
      return new SpillFile(openSync('/dev/full', 'r+'), '/dev/full');
    }
  }
  const space = new FullSpace(directory, 4_000);
  await expect(ranks(space, 100, byRank)).rejects.toMatchObject({ code: 'DISK_FULL' });
  await expect(ranks(space, 100, byRank)).rejects.toThrow('declare an index');
  expect(space.share).toBe(1_000);
});
