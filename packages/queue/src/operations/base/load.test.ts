import { systemClock } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';
import { memoryLog } from '@millrace/kit/log';
import { expect, test } from 'vitest';
import { Load } from './limits.js';

function newLoad(options: { maxInflight?: number; targetMs?: number } = {}) {
  const time = { now: 10_000 };
  const log = memoryLog();
  const clock = { ...systemClock, monotonic: () => time.now };
  const load = new Load({ clock, log, maxInflight: 80, targetMs: 20, ...options });
  return { load, time, log };
}

function isAdmitted(load: Load, urgency: 'new_work' | 'upkeep' = 'new_work'): boolean {
  try {
    load.admit(urgency);
    return true;
  } catch (error) {
    expect(error).toBeInstanceOf(Refusal);
    expect((error as Refusal).code).toBe('RATE_LIMITED');
    return false;
  }
}

/** One second of load with event loop turns of this length. Returns the admitted share. */
function second({ load, time }: ReturnType<typeof newLoad>, turnMs: number, perSecond = 10_000) {
  let taken = 0;
  for (let n = 0; n < perSecond; n++) {
    time.now += 1000 / perSecond;
    if (isAdmitted(load)) taken++;
    load.observe(turnMs, time.now);
  }
  return taken / perSecond;
}

test('nothing is shed while turns are short', () => {
  const parts = newLoad();
  for (let n = 0; n < 4; n++) expect(second(parts, 5)).toBe(1);
});

test('a delay that stays is shed more and more, and what is shed comes back', () => {
  const parts = newLoad();
  const shares = [0, 1, 2, 3].map(() => second(parts, 50));
  expect(shares[1]).toBeLessThan(0.5);
  expect(shares[3]).toBeLessThan(shares[1]!);
  expect(shares[3]).toBeGreaterThan(0);
  for (let n = 0; n < 8; n++) second(parts, 1);
  expect(parts.load.share).toBe(1);
  expect(parts.log.lines.map(({ message }) => message)).toEqual([
    'shedding load: requests wait too long',
    'load shedding ended',
  ]);
});

test('requests that settle tasks are not shed', () => {
  const parts = newLoad();
  for (let n = 0; n < 4; n++) second(parts, 50);
  for (let n = 0; n < 100; n++) expect(isAdmitted(parts.load, 'upkeep')).toBe(true);
});

test('a slow machine with few callers sheds nobody', () => {
  const parts = newLoad();
  for (let n = 0; n < 5; n++) second(parts, 100, 50);
  expect(parts.load.share).toBe(1);
});

test('whoever comes after a quiet time is taken in', () => {
  const parts = newLoad();
  for (let n = 0; n < 4; n++) second(parts, 50);
  parts.time.now += 10_000;
  expect(isAdmitted(parts.load)).toBe(true);
  expect(parts.load.share).toBe(1);
});

test('concurrent requests are limited, with a reserve for requests that must get through', () => {
  const { load } = newLoad({ maxInflight: 2, targetMs: 0 });
  const causes: string[] = [];
  load.onShed = (cause) => causes.push(cause);
  load.enter(0);
  load.enter(0);
  expect(isAdmitted(load)).toBe(true);
  load.enter(0);
  expect(isAdmitted(load)).toBe(false);
  expect(isAdmitted(load, 'upkeep')).toBe(true);
  for (let n = 0; n < 64; n++) load.enter(0);
  expect(isAdmitted(load, 'upkeep')).toBe(false);
  for (let n = 0; n < 67; n++) load.leave(0);
  expect(load.inflight).toBe(0);
  expect(isAdmitted(load)).toBe(true);
  expect(causes).toEqual(['inflight', 'inflight']);
});

test('the bodies of all requests under way must fit into memory', () => {
  const { load } = newLoad({ targetMs: 0 });
  const mebibyte = 2 ** 20;
  for (let n = 0; n < 16; n++) load.enter(16 * mebibyte);
  expect(isAdmitted(load)).toBe(true);
  load.enter(1);
  expect(isAdmitted(load)).toBe(false);
  expect(isAdmitted(load, 'upkeep')).toBe(false);
  load.leave(16 * mebibyte);
  expect(isAdmitted(load)).toBe(true);
});
