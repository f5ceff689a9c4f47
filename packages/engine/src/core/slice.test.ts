import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sortInSlices, Top } from '../query/sort.js';
import { Slice } from './slice.js';

function manualSlice(budgetMs = 4) {
  const state = { now: 0, pauses: 0 };
  const slice = new Slice({
    monotonic: () => state.now,
    budgetMs,
    pause: async () => {
      state.pauses++;
      state.now += 100;
    },
  });
  return { slice, state };
}

test('a pause is due after four milliseconds of work, and begins a new slice', async () => {
  const { slice, state } = manualSlice();
  state.now = 3.9;
  expect(slice.due()).toBe(false);
  state.now = 4;
  expect(slice.due()).toBe(true);
  await slice.pause();
  expect(slice.due()).toBe(false);
});

test('only the time at work counts as elapsed', async () => {
  const { slice, state } = manualSlice();
  state.now = 5;
  await slice.pause();
  state.now += 2;
  slice.leave();
  state.now += 1000;
  slice.enter();
  state.now += 1;
  expect(slice.elapsedMs).toBe(8);
});

test('waiting for the caller is no turn of the event loop', () => {
  const { slice, state } = manualSlice();
  for (let i = 0; i < 5; i++) {
    state.now += 1;
    slice.leave();
    slice.enter();
  }
  expect(slice.due()).toBe(true);
  expect(slice.elapsedMs).toBe(5);
});

test('the clock is looked at after many small records or one large one', () => {
  const { slice, state } = manualSlice();
  expect(slice.spend(100)).toBe(false);
  state.now = 10;
  for (let i = 0; i < 63; i++) expect(slice.spend(100)).toBe(false);
  expect(slice.spend(100)).toBe(true);
  expect(slice.spend(100)).toBe(false);
  expect(slice.spend(1024 * 1024)).toBe(true);
});

test('a pause gives the event loop its turn', async () => {
  const slice = new Slice({ monotonic: () => 0 });
  let turned = false;
  setImmediate(() => (turned = true));
  await slice.pause();
  expect(turned).toBe(true);
});

test('sorting in slices sorts, stable and with pauses', async () => {
  const { slice, state } = manualSlice(0);
  const items = Array.from({ length: 20_000 }, (_, i) => ({ key: (i * 7919) % 100, i }));
  const sorted = await sortInSlices(items, (a, b) => a.key - b.key, slice);
  expect(sorted).toEqual(items.toSorted((a, b) => a.key - b.key));
  expect(state.pauses).toBeGreaterThan(5);
  expect(await sortInSlices([], () => 0, slice)).toEqual([]);
});

test('a top keeps the first of all that it is offered', () => {
  const numbers = fc.array(fc.integer({ min: 0, max: 50 }));
  fc.assert(
    fc.property(numbers, fc.integer({ min: 0, max: 10 }), (all, capacity) => {
      const top = new Top<number>(capacity, (a, b) => a - b);
      for (const each of all) {
        const { last } = top;
        if (last === undefined || each < last) top.add(each);
      }
      const expected = all.toSorted((a, b) => a - b).slice(0, capacity);
      expect(top.items().toSorted((a, b) => a - b)).toEqual(expected);
    }),
  );
});
