import { expect, test } from 'vitest';
import { ManualClock } from './manual-clock.test-support.js';
import { LoopDelay } from './sampler.js';

test('the delay is what a look comes late, unknown until there are some, of the latest window', () => {
  const clock = new ManualClock();
  const reported: string[] = [];
  const histogram = {
    count: 0,
    percentile: () => 204_500_000,
    reset: () => void (histogram.count = 0),
    enable: () => reported.push('on') > 0,
    disable: () => reported.push('off') > 0,
  };
  const delay = new LoopDelay(clock, histogram);
  expect(delay.p99Ms()).toBe(null);
  histogram.count = 50;
  expect(delay.p99Ms()).toBe(4.5);
  expect(histogram.count).toBe(50);
  clock.pass(15_000);
  expect(delay.p99Ms()).toBe(4.5);
  expect(histogram.count).toBe(0);
  // While the new window is still short, the one before stands.
  expect(delay.p99Ms()).toBe(4.5);
  delay.close();
  expect(reported).toEqual(['on', 'off']);
});

test('a loop that is blocked is noticed by the real one', async () => {
  const started = performance.now();
  const delay = new LoopDelay(new ManualClock());
  while (delay.p99Ms() === null && performance.now() - started < 30_000) {
    const busyUntil = performance.now() + 170;
    while (performance.now() < busyUntil);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect(delay.p99Ms()).toBeGreaterThan(5);
  delay.close();
});
