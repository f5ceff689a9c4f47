import { expect, test } from 'vitest';
import { Breaker } from './pacing.js';
import type { TargetHealth } from './outcome.js';

const settings = {
  enabled: true,
  failure_ratio: 0.7,
  min_requests: 10,
  window_ms: 30_000,
  open_ms: 30_000,
};

function calls(breaker: Breaker, now: number, ...healths: TargetHealth[]): void {
  for (const health of healths) breaker.end(breaker.start(), health, now);
}

const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);

function opened(now = 0): Breaker {
  const breaker = new Breaker(settings);
  calls(breaker, now, ...times<TargetHealth>(10, 'bad'));
  expect(breaker.phase).toBe('open');
  return breaker;
}

test('a closed breaker lets everything through', () => {
  expect(new Breaker(settings).allowance(0)).toBe(Infinity);
});

test('70 % of ten opens it, less does not', () => {
  const breaker = new Breaker(settings);
  calls(breaker, 0, ...times<TargetHealth>(3, 'good'), ...times<TargetHealth>(6, 'bad'));
  expect(breaker.phase).toBe('closed');
  calls(breaker, 0, 'bad');
  expect(breaker.phase).toBe('open');
  const healthier = new Breaker(settings);
  calls(healthier, 0, ...times<TargetHealth>(4, 'good'), ...times<TargetHealth>(6, 'bad'));
  expect(healthier.phase).toBe('closed');
});

test('fewer than min_requests never open it, and the one that makes them enough may be good', () => {
  const breaker = new Breaker(settings);
  calls(breaker, 0, ...times<TargetHealth>(9, 'bad'));
  expect(breaker.phase).toBe('closed');
  calls(breaker, 0, 'good');
  expect(breaker.phase).toBe('open');
});

test('breaker: calls before the window do not count', () => {
  const breaker = new Breaker(settings);
  calls(breaker, 0, ...times<TargetHealth>(9, 'bad'));
  calls(breaker, 30_000, 'bad');
  expect(breaker.phase).toBe('closed');
  const within = new Breaker(settings);
  calls(within, 0, ...times<TargetHealth>(9, 'bad'));
  calls(within, 26_999, 'bad');
  expect(within.phase).toBe('open');
});

test('breaker: unknown results do not count', () => {
  const breaker = new Breaker(settings);
  calls(breaker, 0, ...times<TargetHealth>(9, 'bad'), ...times<TargetHealth>(50, 'unknown'));
  expect(breaker.phase).toBe('closed');
});

test('an open breaker lets nothing through until its time is over, then three', () => {
  const breaker = opened(1_000);
  expect(breaker.probesAt).toBe(31_000);
  expect(breaker.allowance(30_999)).toBe(0);
  expect(breaker.allowance(31_000)).toBe(3);
  expect(breaker.phase).toBe('half_open');
  breaker.start();
  expect(breaker.allowance(31_000)).toBe(2);
});

test('three good probes close it, and it forgets what was before', () => {
  const breaker = opened();
  breaker.allowance(30_000);
  calls(breaker, 30_000, 'good', 'good');
  expect(breaker.phase).toBe('half_open');
  expect(breaker.allowance(30_000)).toBe(1);
  calls(breaker, 30_000, 'good');
  expect(breaker.phase).toBe('closed');
  expect(breaker.allowance(30_000)).toBe(Infinity);
  calls(breaker, 30_000, ...times<TargetHealth>(9, 'bad'));
  expect(breaker.phase).toBe('closed');
});

test('one bad probe opens it again for the whole time', () => {
  const breaker = opened();
  breaker.allowance(30_000);
  const [first, second] = [breaker.start(), breaker.start()];
  breaker.end(first, 'good', 30_100);
  breaker.end(second, 'bad', 30_200);
  expect(breaker.phase).toBe('open');
  expect(breaker.probesAt).toBe(60_200);
  expect(breaker.allowance(60_199)).toBe(0);
});

test('breaker: an aborted probe frees its slot', () => {
  const breaker = opened();
  breaker.allowance(30_000);
  const marks = [breaker.start(), breaker.start(), breaker.start()];
  expect(breaker.allowance(30_000)).toBe(0);
  breaker.end(marks[0]!, 'unknown', 30_001);
  expect(breaker.allowance(30_001)).toBe(1);
});

test('a call that began before it opened decides nothing afterwards', () => {
  const breaker = new Breaker(settings);
  const early = times(5, 0).map(() => breaker.start());
  calls(breaker, 0, ...times<TargetHealth>(10, 'bad'));
  breaker.end(early[0]!, 'bad', 5_000);
  expect(breaker.probesAt).toBe(30_000);
  breaker.allowance(30_000);
  breaker.end(early[1]!, 'bad', 30_001);
  breaker.end(early[2]!, 'good', 30_001);
  expect(breaker.phase).toBe('half_open');
  expect(breaker.allowance(30_001)).toBe(3);
  const probe = breaker.start();
  breaker.end(probe, 'bad', 30_002);
  breaker.end(probe, 'bad', 40_000);
  expect(breaker.probesAt).toBe(60_002);
});

test('a breaker that is switched off never opens', () => {
  const breaker = new Breaker({ ...settings, enabled: false });
  calls(breaker, 0, ...times<TargetHealth>(100, 'bad'));
  expect(breaker.allowance(0)).toBe(Infinity);
  expect(breaker.phase).toBe('closed');
});
