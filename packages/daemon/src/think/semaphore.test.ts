import { expect, test } from 'vitest';
import { Semaphore } from './thinker.js';

const never = new AbortController().signal;

test('semaphore: limits concurrency, in FIFO order', async () => {
  const turnstile = new Semaphore(2);
  const order: string[] = [];
  let inside = 0;
  let most = 0;
  const run = (name: string) =>
    turnstile.run(never, async () => {
      order.push(name);
      most = Math.max(most, ++inside);
      await new Promise((resolve) => setImmediate(resolve));
      inside--;
    });
  await Promise.all(['a', 'b', 'c', 'd', 'e'].map(run));
  expect(order).toEqual(['a', 'b', 'c', 'd', 'e']);
  expect(most).toBe(2);
});

test('whoever gives up leaves the line, and work that throws makes room', async () => {
  const turnstile = new Semaphore(1);
  let finish: (error: Error) => void = () => undefined;
  const first = turnstile.run(never, () => new Promise((_, reject) => (finish = reject)));
  const controller = new AbortController();
  const second = turnstile.run(controller.signal, async () => 'second');
  const third = turnstile.run(never, async () => 'third');
  controller.abort();
  expect(await second).toBe(undefined);
  finish(new Error('no'));
  await expect(first).rejects.toThrow('no');
  expect(await third).toBe('third');
  expect(await turnstile.run(controller.signal, async () => 'late')).toBe(undefined);
  expect(await turnstile.run(never, async () => 'free')).toBe('free');
});
