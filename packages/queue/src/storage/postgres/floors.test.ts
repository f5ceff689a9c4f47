import { expect, test } from 'vitest';
import { Floors } from './floors.js';

const place = (due: number, id = 'B') => {
  const places = [];
  places[4] = { due, id };
  return places;
};

/** Claims up to a place, at a moment of the steady clock. */
function claimUpTo(floors: Floors, due: number, at: number, queueNo = 1) {
  const claim = floors.begin('mail', queueNo, at);
  const floor = floors.floor('mail', claim, 4);
  floors.end('mail', claim, place(due), at);
  return floor;
}

test('a claim begins a little below where the last one ended', () => {
  const floors = new Floors();
  expect(claimUpTo(floors, 10_000, 0)).toBe(-1);
  expect(claimUpTo(floors, 20_000, 10)).toBe(9_750);
  expect(claimUpTo(floors, 30_000, 20)).toBe(19_750);
});

test('once a second everything is looked through', () => {
  const floors = new Floors();
  claimUpTo(floors, 10_000, 0);
  expect(claimUpTo(floors, 20_000, 999)).toBe(9_750);
  expect(claimUpTo(floors, 30_000, 1_000)).toBe(-1);
});

test.each([
  { tookMs: 100, restMs: 2_000 },
  { tookMs: 600, restMs: 60_000 },
])('after a look of $tookMs ms the next one is $restMs ms later', ({ tookMs, restMs }) => {
  const floors = new Floors();
  const claim = floors.begin('mail', 1, 0);
  floors.end('mail', claim, place(10_000), tookMs);
  expect(claimUpTo(floors, 20_000, tookMs + restMs - 1)).toBe(9_750);
  expect(claimUpTo(floors, 30_000, tookMs + restMs)).toBe(-1);
});

test('what becomes ready at or below the floor takes it away', () => {
  const floors = new Floors();
  claimUpTo(floors, 10_000, 0);
  floors.lower('mail', 4, 10_000, 'C');
  expect(claimUpTo(floors, 10_000, 1)).toBe(9_750);
  floors.lower('mail', 3, 5_000, 'A');
  expect(claimUpTo(floors, 10_000, 2)).toBe(9_750);
  floors.lower('mail', 4, 10_000, 'A');
  expect(claimUpTo(floors, 10_000, 3)).toBe(-1);
});

test('what becomes ready while a claim is under way is not left below its floor', () => {
  const floors = new Floors();
  const claim = floors.begin('mail', 1, 0);
  floors.lower('mail', 4, 9_000, 'A');
  floors.end('mail', claim, place(10_000), 1);
  expect(claimUpTo(floors, 10_000, 2)).toBe(-1);
});

test('a queue that was made anew has none of the floors of the old one', () => {
  const floors = new Floors();
  claimUpTo(floors, 10_000, 0);
  expect(claimUpTo(floors, 10_000, 1, 2)).toBe(-1);
});
