import { join } from 'node:path';
import { expect, test } from 'vitest';
import { useScratch } from '../../../test/scratch.test-support.js';
import { Tables } from './tables.js';

const scratch = useScratch();
const keyOf = (n: number) => Buffer.from(`k${String(n).padStart(8, '0')}`);

test.each([
  // Sizes of a row, and rows that fit into a page of 4 KiB.
  [1_360, 2],
  [2_000, 2],
  [1_000, 3],
])('tables: rows of %i bytes in key order fill their pages', async (size, perPage) => {
  const tables = new Tables(join(scratch.directory(), 'store.mdb'));
  const valueOf = (n: number) => Buffer.alloc(size, n);
  for (let from = 0; from < 600; from += 200) {
    await tables.commit((put, remove) => {
      for (let n = from; n < from + 200; n++) put('records', keyOf(n), valueOf(n));
      if (from > 0) remove('records', keyOf(from - 1));
    });
  }
  tables.refresh();
  const wanted = Array.from({ length: 600 }, (_, n) => n).filter((n) => n !== 199 && n !== 399);
  for (const { key, value } of tables.range('records', {})) {
    const n = wanted.shift()!;
    expect(key.equals(keyOf(n)) && value.equals(valueOf(n))).toBe(true);
  }
  expect(wanted).toEqual([]);
  const { rows, pages } = tables.stats('records');
  // A page of more rows loses one when it is split.
  expect(rows / pages).toBeGreaterThan(perPage === 2 ? 1.8 : perPage - 1.2);
  await tables.close();
});
