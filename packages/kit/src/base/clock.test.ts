import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { sleepOn, systemClock } from './clock-and-random.js';

test('now is the time of day and monotonic only grows', () => {
  expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(1000);
  const readings = Array.from({ length: 1000 }, () => systemClock.monotonic());
  expect(readings.every((value, i) => i === 0 || value >= readings[i - 1]!)).toBe(true);
});

describe('timers', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test('fire once, after the delay', () => {
    const run = vi.fn();
    systemClock.after(1000, run);
    vi.advanceTimersByTime(999);
    expect(run).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    vi.advanceTimersByTime(10_000);
    expect(run).toHaveBeenCalledTimes(1);
  });

  test('never fire early for a fraction of a millisecond', () => {
    const run = vi.fn();
    systemClock.after(1.2, run);
    vi.advanceTimersByTime(1);
    expect(run).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(run).toHaveBeenCalledTimes(1);
  });

  test('of many days neither fire at once nor are forgotten', () => {
    const run = vi.fn();
    const day = 86_400_000;
    systemClock.after(100 * day, run);
    vi.advanceTimersByTime(100 * day - 1);
    expect(run).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(run).toHaveBeenCalledTimes(1);
  });

  test('can be cancelled, also after they have been armed again', () => {
    const run = vi.fn();
    const timer = systemClock.after(2 ** 32, run);
    vi.advanceTimersByTime(2 ** 31);
    timer.cancel();
    timer.cancel();
    vi.advanceTimersByTime(2 ** 33);
    expect(run).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });

  test('with a negative delay fire as soon as they can, with none at all not', () => {
    const run = vi.fn();
    systemClock.after(-5, run);
    vi.advanceTimersByTime(1);
    expect(run).toHaveBeenCalledTimes(1);
    expect(() => systemClock.after(Number.NaN, run)).toThrow(RangeError);
  });
});

describe('sleep', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test('ends after the delay and lets go of the signal', async () => {
    const { signal } = new AbortController();
    const remove = vi.spyOn(signal, 'removeEventListener');
    const slept = systemClock.sleep(50, signal);
    await vi.advanceTimersByTimeAsync(50);
    await slept;
    expect(remove).toHaveBeenCalledTimes(1);
  });

  test('is cut short by the signal, with its reason, and leaves no timer behind', async () => {
    const controller = new AbortController();
    const slept = sleepOn(systemClock, 50, controller.signal);
    controller.abort(new Error('enough'));
    await expect(slept).rejects.toThrow('enough');
    expect(vi.getTimerCount()).toBe(0);
  });

  test('does not begin when the signal was aborted before', async () => {
    const slept = systemClock.sleep(50, AbortSignal.abort(new Error('never')));
    await expect(slept).rejects.toThrow('never');
    expect(vi.getTimerCount()).toBe(0);
  });
});

test('a waiting timer does not keep the process alive', () => {
  const timer = systemClock.after(3_600_000, () => {});
  const resources = process.getActiveResourcesInfo().filter((name) => name === 'Timeout');
  timer.cancel();
  const without = process.getActiveResourcesInfo().filter((name) => name === 'Timeout');
  expect(resources.length).toBe(without.length);
});
