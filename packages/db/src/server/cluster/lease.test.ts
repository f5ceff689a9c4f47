import { expect, test } from 'vitest';
import { Lease } from './election.js';

test('lease: is valid for two thirds of the TTL after the request was sent', () => {
  const lease = new Lease(9_000);
  expect(lease.isValid(0)).toBe(false);
  lease.granted('1', 9_000, 1_000);
  expect([lease.isValid(6_999), lease.isValid(7_000)]).toEqual([true, false]);
  lease.renewed('1', 3_000);
  expect([lease.isValid(8_999), lease.isValid(9_000)]).toEqual([true, false]);
});

test('lease: a renewal that arrives out of order does not shorten it', () => {
  const lease = new Lease(9_000);
  lease.granted('1', 9_000, 0);
  lease.renewed('1', 3_000);
  lease.renewed('1', 2_000);
  expect(lease.validUntil).toBe(9_000);
});

test('lease: the answer to a renewal of an earlier lease is ignored', () => {
  const lease = new Lease(9_000);
  lease.granted('1', 9_000, 0);
  lease.lost();
  expect(lease.isValid(1)).toBe(false);
  lease.granted('2', 9_000, 10);
  lease.renewed('1', 5_000);
  expect(lease.validUntil).toBe(6_010);
});

test('lease: a longer TTL than wanted does not make it longer', () => {
  const lease = new Lease(3_000);
  lease.granted('1', 60_000, 0);
  expect(lease.validUntil).toBe(2_000);
});
