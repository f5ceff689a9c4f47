import { expect, test } from 'vitest';
import { Floors } from './floors.js';

const queue = 'mail';
/** Where priority 4 is in the lists from high to low. */
const four = 5;

function lastDue(due: number): (number | undefined)[] {
  const last: (number | undefined)[] = [];
  last[4] = due;
  return last;
}

/** Claims up to a due time, and says above which it looked. */
function claimUpTo(floors: Floors, due: number, queueNo = 1): number {
  const claim = floors.begin(queue, queueNo);
  const above = floors.above(queue)[four]!;
  floors.end(queue, claim, lastDue(due));
  return above;
}

test('a claim begins a little below where the last one ended', () => {
  const floors = new Floors();
  expect(claimUpTo(floors, 10_000)).toBe(-1);
  expect(claimUpTo(floors, 20_000)).toBe(9_750);
  expect(claimUpTo(floors, 30_000)).toBe(19_750);
  expect(floors.above(queue)).toEqual([-1, -1, -1, -1, -1, 29_750, -1, -1, -1, -1]);
});

test('what becomes ready below the floor lowers it, in its own priority', () => {
  const floors = new Floors();
  claimUpTo(floors, 10_000);
  floors.lower(queue, 4, 11_000);
  floors.lower(queue, 3, 5_000);
  expect(floors.above(queue)[four]).toBe(9_750);
  floors.lower(queue, 4, 5_000);
  expect(floors.above(queue)[four]).toBe(4_750);
  floors.lowerAll(queue, 2_000);
  expect(floors.above(queue)[four]).toBe(1_750);
});

test('what becomes ready while a claim is under way is not left below its floor', () => {
  const floors = new Floors();
  const claim = floors.begin(queue, 1);
  floors.lower(queue, 4, 9_000);
  floors.lower(queue, 4, 9_500);
  floors.end(queue, claim, lastDue(10_000));
  expect(floors.above(queue)[four]).toBe(8_750);
});

test('a claim of nothing leaves the floor where it is', () => {
  const floors = new Floors();
  claimUpTo(floors, 10_000);
  floors.end(queue, floors.begin(queue, 1), []);
  expect(floors.above(queue)[four]).toBe(9_750);
});

test('a queue that was made anew has none of the floors of the old one', () => {
  const floors = new Floors();
  claimUpTo(floors, 10_000);
  expect(claimUpTo(floors, 10_000, 2)).toBe(-1);
});

test('where it is deep, what is ready far below the floor is a stray, and the floor stays', () => {
  const floors = new Floors();
  claimUpTo(floors, 100_000);
  floors.setDeep(queue, true);
  floors.lower(queue, 4, 99_500);
  expect(floors.above(queue)[four]).toBe(99_250);
  expect(floors.stray(queue)).toBeUndefined();
  floors.lower(queue, 4, 5_000);
  floors.lower(queue, 4, 5_000);
  floors.lower(queue, 4, 7_000);
  expect(floors.above(queue)[four]).toBe(99_250);
  const stray = floors.stray(queue)!;
  expect(stray).toEqual({ from: 5_000, to: 5_000 });
  floors.noStray(queue, stray);
  expect(floors.stray(queue)).toEqual({ from: 7_000, to: 7_000 });
});

test('what waits for its time is looked for from shortly before the last time on', () => {
  const floors = new Floors();
  expect(floors.scheduledFrom(queue)).toBe(0);
  floors.madeReady(queue, 1, 100_000);
  expect(floors.scheduledFrom(queue)).toBe(95_000);
  floors.awaits(queue, 120_000);
  expect(floors.scheduledFrom(queue)).toBe(95_000);
  floors.awaits(queue, 50_000);
  expect(floors.scheduledFrom(queue)).toBe(50_000);
});

test('a server takes over the floors of another where it has none itself', () => {
  const floors = new Floors();
  claimUpTo(floors, 10_000);
  floors.adopt(queue, 1, [5_000, -1, -1, -1, -1, 99_000, -1, -1, -1, -1]);
  expect(floors.above(queue)).toEqual([4_750, -1, -1, -1, -1, 9_750, -1, -1, -1, -1]);
});
