import { expect, test } from 'vitest';
import { lastCommonCommit } from './catch-up.js';

/** Two histories that diverge after `fork`, and a count of requests to the leader. */
async function search(low: number, high: number, fork: number) {
  let requestCount = 0;
  const found = await lastCommonCommit({
    low,
    high,
    chainAt: (seq) => ({ high: 0, low: seq }),
    isShared: ({ seq, chain }) => {
      requestCount++;
      expect(chain.low).toBe(seq);
      return Promise.resolve(seq <= fork);
    },
  });
  return { found, requestCount };
}

test('last common commit: finds where two histories diverge', async () => {
  for (let fork = 10; fork <= 20; fork++) {
    expect((await search(10, 20, fork)).found).toBe(fork);
  }
  expect((await search(7, 7, 7)).found).toBe(7);
});

test('last common commit: needs few requests for many commits', async () => {
  const { found, requestCount } = await search(0, 5_000_000, 4_999_990);
  expect(found).toBe(4_999_990);
  expect(requestCount).toBeLessThan(26);
});

test('last common commit: is undefined when the logs are too short', async () => {
  expect((await search(10, 20, 9)).found).toBeUndefined();
  expect((await search(10, 9, 9)).found).toBeUndefined();
});
