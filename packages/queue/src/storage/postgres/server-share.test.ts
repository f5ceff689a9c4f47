import { expect, test } from 'vitest';
import type { ClaimRequest } from '../port/task-store.js';
import type { Connections } from './connections.js';
import { ServerShare } from './claims.js';

/** A share whose counts of claimants the test answers one by one. */
function setUp() {
  const counts: ((claimants: number) => void)[] = [];
  const query = () =>
    new Promise((resolve) => counts.push((claimants) => resolve([{ claimants }])));
  const time = { now: 0 };
  const share = new ServerShare({ query } as unknown as Connections, 'one', () => time.now);
  const room = () =>
    share.room({ queue: 'mail', limit: 10, maxInFlight: 10, now: 0 } as ClaimRequest);
  return { counts, time, room };
}

test('share: the first claim waits for the count of claimants', async () => {
  const { counts, room } = setUp();
  const first = room();
  counts[0]!(2);
  expect(await first).toBe(5);
});

test('share: later counts are read beside the claims', async () => {
  const { counts, time, room } = setUp();
  const first = room();
  counts[0]!(1);
  await first;
  time.now = 1_000;
  expect(await room()).toBe(10);
  counts[1]!(2);
  await expect.poll(room).toBe(5);
  expect(counts).toHaveLength(2);
});

test('share: after a pause the count is read before the claim', async () => {
  const { counts, time, room } = setUp();
  const first = room();
  counts[0]!(2);
  await first;
  time.now = 60_000;
  const next = room();
  counts[1]!(1);
  expect(await next).toBe(10);
});
