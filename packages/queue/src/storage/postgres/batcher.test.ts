import { expect, test } from 'vitest';
import { StorageUnavailable } from '../port/task-store.js';
import { Batcher, partsWithoutRepeats } from './batches.js';

/** Answers in capitals; each run waits until it is let go. */
function batcher(over: { maxItems?: number; maxBytes?: number; fail?: (list: string[]) => void }) {
  const runs: string[][] = [];
  const gates: (() => void)[] = [];
  const made = new Batcher<string, string>({
    maxItems: over.maxItems ?? 100,
    maxConcurrent: 1,
    maxBytes: over.maxBytes ?? Infinity,
    bytesOf: (item) => item.length,
    run: async (items) => {
      runs.push([...items]);
      await new Promise<void>((resolve) => gates.push(resolve));
      over.fail?.([...items]);
      return items.map((item) => item.toUpperCase());
    },
  });
  const letAllGo = async (all: Promise<unknown>) => {
    let isOver = false;
    const end = () => (isOver = true);
    void all.then(end, end);
    while (!isOver) {
      gates.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    return all;
  };
  return { made, runs, letAllGo };
}

test('calls that come while one is under way share the next run, and each gets its answers', async () => {
  const { made, runs, letAllGo } = batcher({});
  const first = made.add(['a']);
  await expect.poll(() => runs.length).toBe(1);
  const all = Promise.all([first, made.add(['b', 'c']), made.add([]), made.add(['d'])]);
  expect(await letAllGo(all)).toEqual([['A'], ['B', 'C'], [], ['D']]);
  expect(runs).toEqual([['a'], ['b', 'c', 'd']]);
});

test('a call stays whole, and a run takes no more than it may', async () => {
  const { made, runs, letAllGo } = batcher({ maxItems: 3, maxBytes: 6 });
  const calls = [['a', 'b'], ['c', 'd'], ['e'], ['large', 'x'], ['y']];
  await letAllGo(Promise.all(calls.map((call) => made.add(call))));
  expect(runs).toEqual([['a', 'b'], ['c', 'd', 'e'], ['large', 'x'], ['y']]);
});

test('a failing call does not fail the others', async () => {
  const fail = (list: string[]) => {
    if (list.includes('bad')) throw new Error('no');
  };
  const { made, letAllGo } = batcher({ fail });
  const results = Promise.allSettled([made.add(['a']), made.add(['bad']), made.add(['b'])]);
  expect(await letAllGo(results)).toMatchObject([
    { value: ['A'] },
    { reason: { message: 'no' } },
    { value: ['B'] },
  ]);
});

test('an unavailable database is not called again for each item', async () => {
  const fail = () => {
    throw new StorageUnavailable('away');
  };
  const { made, runs, letAllGo } = batcher({ fail });
  const results = Promise.allSettled([made.add(['a']), made.add(['b'])]);
  expect(await letAllGo(results)).toMatchObject([{ status: 'rejected' }, { status: 'rejected' }]);
  expect(runs).toEqual([['a', 'b']]);
});

test('a list is split where a key comes again', () => {
  const parts = partsWithoutRepeats(['a', 'b', 'a', 'c', 'c', 'b'], (item) => item);
  expect(parts).toEqual([
    ['a', 'b'],
    ['a', 'c'],
    ['c', 'b'],
  ]);
  expect(partsWithoutRepeats([], String)).toEqual([]);
});
