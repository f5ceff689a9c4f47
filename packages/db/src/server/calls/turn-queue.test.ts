import { expect, test } from 'vitest';
import { TurnQueue } from './turn-queue.js';

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('what comes in one turn is done together at its end, in order', async () => {
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

test('what comes while others are done waits for the next turn', async () => {
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
