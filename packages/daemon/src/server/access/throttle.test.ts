import { simulate } from '@millrace/kit/simulation';
import { expect, test } from 'vitest';
import { Throttle } from './logins.js';

function failTimes(throttle: Throttle, address: string, times: number): void {
  for (let n = 0; n < times; n++) throttle.failed(address);
}

test('throttle: allows a burst of ten, then one every six seconds', async () => {
  const world = simulate(1);
  const throttle = new Throttle(world.clock);
  failTimes(throttle, '10.0.0.1', 9);
  expect(throttle.waitMs('10.0.0.1')).toBe(0);
  throttle.failed('10.0.0.1');
  expect(throttle.waitMs('10.0.0.1')).toBe(6_000);
  expect(throttle.waitMs('10.0.0.2')).toBe(0);
  await world.runFor(5_999);
  expect(throttle.waitMs('10.0.0.1')).toBe(1);
  await world.runFor(1);
  expect(throttle.waitMs('10.0.0.1')).toBe(0);
  throttle.failed('10.0.0.1');
  expect(throttle.waitMs('10.0.0.1')).toBe(6_000);
  await world.runFor(3_600_000);
  failTimes(throttle, '10.0.0.1', 9);
  expect(throttle.waitMs('10.0.0.1')).toBe(0);
});

test('throttle: normalizes addresses and groups IPv6 by /64', () => {
  const throttle = new Throttle(simulate(1).clock);
  failTimes(throttle, '::ffff:10.0.0.1', 10);
  expect(throttle.waitMs('10.0.0.1')).toBeGreaterThan(0);
  failTimes(throttle, '2001:db8:1:2::5', 10);
  expect(throttle.waitMs('2001:db8:1:2:ffff::1')).toBeGreaterThan(0);
  expect(throttle.waitMs('2001:db8:1:3::5')).toBe(0);
});

test('throttle: the number of tracked addresses is limited', () => {
  const throttle = new Throttle(simulate(1).clock);
  failTimes(throttle, '10.0.0.1', 10);
  for (let n = 0; n < 10_000; n++) throttle.failed(`10.1.${n >> 8}.${n & 255}`);
  expect(throttle.waitMs('10.0.0.1')).toBe(0);
});
