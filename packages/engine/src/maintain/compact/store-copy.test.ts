import { join } from 'node:path';
import { seededRandom } from '@millrace/kit/random';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Core } from '../../core/core.js';
import { useScratch } from '../../../test/scratch.test-support.js';
import { tableNames, Tables } from '../../storage/file/tables.js';
import { copyLimits, StoreCopy } from './store-copy.js';

const scratch = useScratch();

/** Every row of a file. */
function rowsOf(tables: Tables): string[] {
  tables.refresh();
  return tableNames.flatMap((table) =>
    Array.from(tables.range(table, {}), ({ key, value }) =>
      [table, key.toString('hex'), value.toString('hex')].join(' '),
    ),
  );
}

async function writeOn(core: Core, seed: number, isOver: () => boolean): Promise<void> {
  const random = seededRandom(seed);
  while (!isOver()) {
    await core.writer.submit(() => {
      for (let i = random.integer(1, 8); i > 0; i--) {
        const key = Buffer.from(`${random.integer(0, 60)}`.padStart(8, '0'));
        const table = tableNames[random.integer(1, 7)]!;
        if (random.next() < 0.4) core.writer.remove(table, key);
        else core.writer.put(table, key, Buffer.from(random.bytes(random.integer(1, 60))));
      }
    });
  }
}

test('a copy made beside writers, in steps of any size, is the same as the file in the end', async () => {
  const limits = fc.record({
    rows: fc.integer({ min: 7, max: 60 }),
    touched: fc.integer({ min: 0, max: 40 }),
    calmRounds: fc.integer({ min: 0, max: 3 }),
  });
  await fc.assert(
    fc.asyncProperty(limits, fc.integer(), async (chosen, seed) => {
      const { core, directory } = await scratch.open();
      let over = false;
      const filling = writeOn(core, seed, () => over);
      await new Promise((resolve) => setTimeout(resolve, 20));
      const fresh = new Tables(join(directory, 'copy.mdb'));
      const copy = new StoreCopy(core, fresh, () => undefined, { ...copyLimits, ...chosen });
      await copy.copyAll();
      await copy.calmDown();
      await copy.compareAll();
      await core.writer.hold(async () => {
        await core.store.fold();
        await copy.catchUp();
        copy.compareCounts();
        expect(rowsOf(fresh)).toEqual(rowsOf(core.tables));
      });
      over = true;
      await filling;
      await fresh.close();
    }),
    { numRuns: 6 },
  );
});

test('a row written once, behind or before the place the copy has reached, is in the copy as it is now', async () => {
  const { core, directory } = await scratch.open();
  const keyOf = (n: number) => Buffer.from(`${n}`.padStart(8, '0'));
  const tables = ['records', 'rows'] as const;
  await core.writer.submit(() => {
    for (const table of tables) {
      for (let n = 0; n < 200; n++) core.writer.put(table, keyOf(n), Buffer.from(`old ${n}`));
    }
  });
  // Each row is touched at most once, and not in order: a change that is missed stays missed.
  const random = seededRandom(1);
  const order = tables
    .flatMap((table) => Array.from({ length: 200 }, (_, n) => ({ table, n, at: random.next() })))
    .sort((a, b) => a.at - b.at);
  const pulse = async () => {
    const some = order.splice(0, 6);
    await core.writer.submit(() => {
      for (const { table, n } of some) {
        if (n % 3 === 0) core.writer.remove(table, keyOf(n));
        else core.writer.put(table, keyOf(n), Buffer.from(`new ${n}`));
        if (n % 5 === 0) core.writer.put(table, Buffer.from(`${n}.5`.padStart(9, '0')), keyOf(n));
      }
    });
  };
  const fresh = new Tables(join(directory, 'copy.mdb'));
  const copy = new StoreCopy(core, fresh, pulse, { ...copyLimits, rows: 10, touched: 3 });
  await copy.copyAll();
  await copy.compareAll();
  await core.writer.hold(async () => {
    await core.store.fold();
    await copy.catchUp();
    copy.compareCounts();
    expect(rowsOf(fresh)).toEqual(rowsOf(core.tables));
  });
  await fresh.close();
});
