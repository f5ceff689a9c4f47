import { expect, test } from 'vitest';
import { callbackCounter, countsIn } from './watching.js';

test('the outcomes of a queue are summed, other metrics passed over', () => {
  const text = `
# HELP millrace_queue_deliveries_total Callbacks
millrace_queue_deliveries_total{queue="mail",outcome="succeeded"} 40
millrace_queue_deliveries_total{outcome="failed",queue="mail"} 2
millrace_queue_deliveries_total{queue="pay.x",outcome="async"} 1e3
millrace_queue_retries_total{queue="mail"} 7
`;
  expect([...countsIn(text)]).toEqual([
    ['mail', 42],
    ['pay.x', 1000],
  ]);
});

test('without an address there are no counts', async () => {
  const { signal } = new AbortController();
  expect(await callbackCounter(undefined, undefined, signal)()).toBeUndefined();
});
