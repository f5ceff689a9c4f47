import { expect, test, vi } from 'vitest';
import type { Database, OpenOptions } from '../database.js';
import { useScratch } from '../scratch.test-support.js';

const scratch = useScratch();

async function write(database: Database, from: number, to: number): Promise<void> {
  await database.transact(({ rows }) => {
    for (let n = from; n < to; n++) rows.put(Buffer.from(`row ${n}`), Buffer.from('value'));
  });
}

/** A database with nothing to fold, and its commits of LMDB from now on. */
async function openFolded(options?: OpenOptions) {
  const database = await scratch.open(options);
  await database.core.store.fold();
  return { database, commit: vi.spyOn(database.core.tables, 'commit') };
}

test.each([
  { fold: undefined, afterMs: 200 },
  { fold: { afterMs: 2_000, maxRows: 1_000 }, afterMs: 2_000 },
])('fold: starts $afterMs ms after the first batch', async ({ fold, afterMs }) => {
  const { database, commit } = await openFolded(fold && { fold });
  await write(database, 0, 10);
  scratch.clock.advance(afterMs - 1);
  await write(database, 10, 20);
  expect(commit).not.toHaveBeenCalled();
  scratch.clock.advance(1);
  expect(commit).toHaveBeenCalledTimes(1);
});

test.each([
  { fold: undefined, maxRows: 1_000 },
  { fold: { afterMs: 2_000, maxRows: 50 }, maxRows: 50 },
])('fold: starts at once with $maxRows rows', async ({ fold, maxRows }) => {
  const { database, commit } = await openFolded(fold && { fold });
  // Replaced rows count once. A batch has a row of the database itself.
  for (let n = 0; n < 10; n++) await write(database, 0, maxRows - 2);
  expect(commit).not.toHaveBeenCalled();
  await write(database, maxRows - 2, maxRows);
  expect(commit).toHaveBeenCalledTimes(1);
});
