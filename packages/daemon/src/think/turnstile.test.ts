import { expect, test } from 'vitest';
import { Turnstile } from './turnstile.js';

const never = new AbortController().signal;

test('so many at once, the others in their order', async () => {
  const turnstile = new Turnstile(2);
  const order: string[] = [];
  let inside = 0;
  let most = 0;
  const pass = (name: string) =>
    turnstile.pass(never, async () => {
      order.push(name);
      most = Math.max(most, ++inside);
      await new Promise((resolve) => setImmediate(resolve));
      inside--;
    });
  await Promise.all(['a', 'b', 'c', 'd', 'e'].map(pass));
  expect(order).toEqual(['a', 'b', 'c', 'd', 'e']);
  expect(most).toBe(2);
});

test('whoever gives up leaves the line, and work that throws makes room', async () => {
  const turnstile = new Turnstile(1);
  let finish: (error: Error) => void = () => undefined;
  const first = turnstile.pass(never, () => new Promise((_, reject) => (finish = reject)));
  const controller = new AbortController();
  const second = turnstile.pass(controller.signal, async () => 'second');
  const third = turnstile.pass(never, async () => 'third');
  controller.abort();
  expect(await second).toBe(undefined);
  finish(new Error('no'));
  await expect(first).rejects.toThrow('no');
  expect(await third).toBe('third');
  expect(await turnstile.pass(controller.signal, async () => 'late')).toBe(undefined);
  expect(await turnstile.pass(never, async () => 'free')).toBe('free');
});
