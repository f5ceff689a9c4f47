import { silentLog } from '@millrace/kit/log';
import { expect, test } from 'vitest';
import { ManualClock } from '../../test/manual-clock.test-support.js';
import { OverlayFold } from './store.js';
import { Overlay, PendingWrites } from './overlay/overlay.js';
import type { Tables } from './file/tables.js';

/** A fold whose store has no file and counts the commits. */
function setUp() {
  const clock = new ManualClock();
  const overlay = new Overlay();
  const seen = { commits: 0 };
  const commit = () => Promise.resolve(void seen.commits++);
  const tables = { get: () => undefined, commit, refresh: () => undefined } as unknown as Tables;
  const store = { tables, overlay, durableLsn: Infinity };
  const fold = new OverlayFold(store, { clock, log: silentLog, onFolded: () => undefined });
  let lsn = 0;
  const write = (rowCount: number) => {
    const writes = new PendingWrites();
    for (let n = 0; n < rowCount; n++) writes.set('rows', Buffer.from(`${n}`), Buffer.from('x'));
    overlay.add(writes, ++lsn, -1);
    fold.schedule();
  };
  return { clock, overlay, seen, write };
}

test('fold: a few rows wait a second for others', async () => {
  const { clock, overlay, seen, write } = setUp();
  write(10);
  clock.advance(600);
  write(10);
  clock.advance(399);
  expect(seen.commits).toBe(0);
  clock.advance(1);
  await expect.poll(() => overlay.layers.length).toBe(0);
  expect(seen.commits).toBe(1);
});

test('fold: a full layer is folded at once', async () => {
  const { overlay, seen, write } = setUp();
  write(1_000);
  expect(seen.commits).toBe(1);
  await expect.poll(() => overlay.layers.length).toBe(0);
});
