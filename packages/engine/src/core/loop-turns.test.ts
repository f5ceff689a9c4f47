import { expect, test } from 'vitest';
import { LoopTurns, Slice } from './slice.js';

/** A clock that moves only when somebody works. */
function manualTurns() {
  const state = { now: 0 };
  const monotonic = () => state.now;
  const turns = new LoopTurns(monotonic);
  const newSlice = () => new Slice({ monotonic, turns, pause: (kind) => turns.wait(kind) });
  return { state, turns, newSlice };
}

const eventLoopTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

test('loop turns: many queries together work no longer per turn than one', async () => {
  const { state, newSlice } = manualTurns();
  const scan = async (): Promise<void> => {
    const slice = newSlice();
    await slice.begin();
    for (let step = 0; step < 200; step++) {
      state.now += 0.01;
      if (slice.spend(100)) await slice.pause();
    }
  };
  let isOver = false;
  const scans = Promise.all(Array.from({ length: 50 }, scan)).then(() => (isOver = true));
  let longest = 0;
  while (!isOver) {
    const before = state.now;
    await eventLoopTurn();
    longest = Math.max(longest, state.now - before);
  }
  await scans;
  expect(state.now).toBeCloseTo(50 * 2);
  // Of one turn of queries, or of two, by the order of the immediates; 50 would be all of them.
  expect(longest).toBeLessThan(2 * 5);
});

test('loop turns: a new query does not wait for all that work already', async () => {
  const { turns } = manualTurns();
  const order: string[] = [];
  const waits = ['a', 'b', 'c', 'd'].map((name) => turns.wait('next').then(() => order.push(name)));
  waits.push(turns.wait('first').then(() => order.push('new')));
  await Promise.all(waits);
  expect(order.indexOf('new')).toBeLessThanOrEqual(1);
  expect(order.filter((name) => name !== 'new')).toEqual(['a', 'b', 'c', 'd']);
});

test('loop turns: reports how long a query waited', async () => {
  const { state, turns } = manualTurns();
  const waited: [string, number][] = [];
  turns.onWait = (kind, ms) => waited.push([kind, ms]);
  const wait = turns.wait('next');
  state.now += 7;
  await wait;
  expect(waited).toEqual([['next', 7]]);
});
