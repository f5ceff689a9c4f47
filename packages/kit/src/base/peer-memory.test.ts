import { describe, expect, test } from 'vitest';
import { PeerMemory, peerMemoryLimits, ReadRate } from './limits.js';

describe('peer memory', () => {
  const limits = peerMemoryLimits(1000);

  test('reserve: refuses what passes the limit of one connection', () => {
    const account = new PeerMemory(limits).openAccount();
    expect(account.tryReserve(250)).toBe(true);
    expect(account.tryReserve(1)).toBe(false);
    account.release(100);
    expect(account.tryReserve(100)).toBe(true);
  });

  test('reserve: refuses what passes the limit of the process', () => {
    const memory = new PeerMemory(limits);
    const accounts = Array.from({ length: 5 }, () => memory.openAccount());
    expect(accounts.map((account) => account.tryReserve(250))).toEqual([
      true,
      true,
      true,
      true,
      false,
    ]);
    expect(memory.heldBytes).toBe(1000);
  });

  test('close: releases everything once', () => {
    const memory = new PeerMemory(limits);
    const account = memory.openAccount();
    account.reserve(300);
    expect(account.isOverLimit).toBe(true);
    account.close();
    account.release(300);
    account.reserve(10);
    expect(memory.heldBytes).toBe(0);
  });
});

describe('read rate', () => {
  test('a peer below 1 KiB/s over 30 s while responses wait is too slow', () => {
    const rate = new ReadRate();
    rate.waiting(0);
    rate.taken(1024 * 29);
    expect(rate.isTooSlow(29_999)).toBe(false);
    expect(rate.isTooSlow(30_000)).toBe(true);
  });

  test('a peer at 1 KiB/s is not, and each window counts alone', () => {
    const rate = new ReadRate();
    rate.waiting(0);
    rate.taken(1024 * 30);
    expect(rate.isTooSlow(30_000)).toBe(false);
    expect(rate.isTooSlow(60_000)).toBe(true);
  });

  test('time in which nothing waits does not count', () => {
    const rate = new ReadRate();
    rate.waiting(0);
    rate.drained();
    expect(rate.isTooSlow(90_000)).toBe(false);
    rate.waiting(90_000);
    expect(rate.isTooSlow(100_000)).toBe(false);
  });
});
