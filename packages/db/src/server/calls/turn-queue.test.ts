import { systemClock } from '@millrace/kit/clock';
import { expect, test } from 'vitest';
import { TurnQueue } from './turn-queue.js';

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('turn queue: runs the items of one turn together, in order', async () => {
  const done: string[] = [];
  const queue = new TurnQueue<string>((item) => done.push(item));
  queue.push('a');
  queue.push('b');
  expect(done).toEqual([]);
  await turn();
  expect(done).toEqual(['a', 'b']);
  queue.push('c');
  await turn();
  expect(done).toEqual(['a', 'b', 'c']);
});

test('turn queue: items pushed during a run wait for the next turn', async () => {
  const done: number[] = [];
  const queue = new TurnQueue<number>((item) => {
    done.push(item);
    if (item < 3) queue.push(item + 1);
  });
  queue.push(1);
  await turn();
  expect(done).toEqual([1]);
  await turn();
  expect(done).toEqual([1, 2]);
  await turn();
  expect(done).toEqual([1, 2, 3]);
});

test('turn queue: long work yields to the event loop', async () => {
  let now = 0;
  const clock = { ...systemClock, monotonic: () => now };
  const done: number[] = [];
  const delays: number[] = [];
  const ends: number[] = [];
  const queue = new TurnQueue<number>(
    (item) => {
      done.push(item);
      now += 6;
    },
    { clock, onDelay: (delayMs) => delays.push(delayMs), onEnd: () => ends.push(done.length) },
  );
  for (let n = 0; n < 5; n++) queue.push(n);
  await turn();
  expect(done).toEqual([0, 1]);
  queue.push(5);
  await turn();
  await turn();
  expect(done).toEqual([0, 1, 2, 3, 4, 5]);
  expect(delays).toEqual([0, 12, 24]);
  expect(ends).toEqual([2, 4, 6]);
});
