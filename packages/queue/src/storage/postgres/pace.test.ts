import { systemClock } from '@millrace/kit/clock';
import { expect, test } from 'vitest';
import { Pace } from './pace.js';

/** A clock that stands still, and notes how long somebody slept. */
function paced() {
  const slept: number[] = [];
  const sleep = (delayMs: number) => Promise.resolve(void slept.push(delayMs));
  return { slept, pace: new Pace({ ...systemClock, monotonic: () => 100, sleep }) };
}

const ask = (limit: number) => ({ queue: 'mail', limit, maxInFlight: 64 });

test('after a claim that left some, a small one waits for more places', async () => {
  const { pace, slept } = paced();
  pace.claimed(ask(3), 3);
  await pace.wait(ask(3));
  expect(slept).toEqual([10]);
});

test.each([
  ['the queue has no more', 3, 2, ask(3)],
  ['many places are free', 3, 3, ask(17)],
  ['it is a large one', 3, 3, { queue: 'mail', limit: 50, maxInFlight: 10_000 }],
  ['another queue is asked', 3, 3, { ...ask(3), queue: 'post' }],
])('nobody waits when %s', async (_why, limit, count, next) => {
  const { pace, slept } = paced();
  pace.claimed(ask(limit), count);
  await pace.wait(next);
  expect(slept).toEqual([]);
});
