import { systemClock } from '@millrace/kit/clock';
import { expect, test } from 'vitest';
import { ClaimThrottle } from './claims.js';

/** A stopped clock that records sleeps. */
function setUp() {
  const slept: number[] = [];
  const sleep = (delayMs: number) => Promise.resolve(void slept.push(delayMs));
  return { slept, throttle: new ClaimThrottle({ ...systemClock, monotonic: () => 100, sleep }) };
}

const request = (limit: number) => ({ queue: 'mail', limit, maxInFlight: 64 });

test('after a claim that left some, a small one waits for more places', async () => {
  const { throttle, slept } = setUp();
  throttle.claimed(request(3), 3);
  await throttle.wait(request(3));
  expect(slept).toEqual([10]);
});

test.each([
  ['the queue has no more', 3, 2, request(3)],
  ['many places are free', 3, 3, request(17)],
  ['it is a large one', 3, 3, { queue: 'mail', limit: 50, maxInFlight: 10_000 }],
  ['it is for another queue', 3, 3, { ...request(3), queue: 'post' }],
])('nobody waits when %s', async (_why, limit, count, next) => {
  const { throttle, slept } = setUp();
  throttle.claimed(request(limit), count);
  await throttle.wait(next);
  expect(slept).toEqual([]);
});
