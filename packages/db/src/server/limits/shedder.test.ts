import { expect, test } from 'vitest';
import { Shedder } from './admission.js';

/** Simulates one second of `perSecond` calls delayed by `delayMs`. Returns the admitted share. */
function second(shedder: Shedder, start: number, perSecond: number, delayMs: number): number {
  let taken = 0;
  for (let n = 0; n < perSecond; n++) {
    const now = start + (n * 1000) / perSecond;
    if (shedder.admits(now)) taken++;
    shedder.observe('loop', delayMs, now);
  }
  return taken / perSecond;
}

test('shedder: admits everything without queue delay', () => {
  const shedder = new Shedder(20, 500);
  for (let at = 0; at < 5_000; at += 1_000) expect(second(shedder, at, 10_000, 5)).toBe(1);
});

test('shedder: sheds more while the delay stays and recovers afterwards', () => {
  const shedder = new Shedder(20, 500);
  const shares = [0, 1, 2, 3].map((at) => second(shedder, at * 1_000, 10_000, 50));
  expect(shares[1]).toBeLessThan(0.5);
  expect(shares[3]).toBeLessThan(shares[1]!);
  expect(shares[3]).toBeGreaterThan(0);
  for (let at = 4; at < 12; at++) second(shedder, at * 1_000, 10_000, 1);
  expect(shedder.share).toBe(1);
});

test('shedder: a burst of half a second is not shed', () => {
  const shedder = new Shedder(20, 500);
  second(shedder, 0, 1_000, 1);
  for (let n = 0; n < 400; n++) {
    shedder.admits(1_000 + n);
    shedder.observe('loop', 200, 1_000 + n);
  }
  expect(second(shedder, 1_400, 1_000, 1)).toBe(1);
});

test('shedder: one call below the target shows that there is no standing queue', () => {
  const shedder = new Shedder(20, 500);
  for (let at = 0; at < 4_000; at += 1) {
    shedder.admits(at);
    shedder.observe('loop', at % 100 === 0 ? 0 : 90, at);
  }
  expect(shedder.share).toBe(1);
});

test('shedder: sheds few callers too when their delay stays', () => {
  const shedder = new Shedder(20, 500);
  for (let at = 0; at < 5; at++) second(shedder, at * 1_000, 10, 100);
  expect(shedder.share).toBeLessThan(0.5);
});

test('shedder: calls that wait for the writer count', () => {
  const shedder = new Shedder(20, 500);
  for (let at = 0; at < 3_000; at += 10) {
    shedder.observe('loop', 0, at);
    shedder.observe('writer', 80, at);
  }
  expect(shedder.share).toBeLessThan(0.5);
});

test('shedder: admits calls after an idle time', () => {
  const shedder = new Shedder(20, 500);
  for (let at = 0; at < 3; at++) second(shedder, at * 1_000, 10_000, 50);
  expect(shedder.share).toBeLessThan(0.5);
  expect(shedder.admits(10_000)).toBe(true);
  expect(shedder.share).toBe(1);
});

test('shedder: starts when the delay has stayed above the target for an interval', () => {
  const shedder = new Shedder(1_000, 1_000);
  // A burst of 2 s: the delay grows steadily and reaches the target halfway.
  for (let at = 0; at <= 2_000; at += 10) {
    shedder.admits(at);
    shedder.observe('writer', at, at);
  }
  expect(shedder.share).toBe(1);
  for (let at = 2_010; at <= 4_000; at += 10) {
    shedder.admits(at);
    shedder.observe('writer', 2_000, at);
  }
  expect(shedder.share).toBeLessThan(1);
});
