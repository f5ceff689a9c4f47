import { silentLog } from '@millrace/kit/log';
import { expect, test } from 'vitest';
import { LowWaterMarkSweeper } from './low-water-marks.js';

/** A sweeper whose sweeps take as long as `tookMs` says, by a clock that the test moves. */
function setUp() {
  const state = { now: 0, tookMs: 10, sweeps: 0, warnings: 0, fails: false };
  const connections = {
    queryWithin: async () => {
      state.sweeps++;
      state.now += state.tookMs;
      if (state.fails) throw new Error('gone');
      return [];
    },
  };
  const log = { ...silentLog, warn: () => void state.warnings++ };
  const sweeper = new LowWaterMarkSweeper(connections, () => state.now, log);
  const sweepAfter = async (ms: number) => {
    state.now += ms;
    sweeper.sweepIfDue('mail');
    await sweeper.close();
    return state.sweeps;
  };
  return { state, sweepAfter };
}

test('low-water mark sweeper: sweeps at most once a second', async () => {
  const { sweepAfter } = setUp();
  expect(await sweepAfter(0)).toBe(1);
  expect(await sweepAfter(999)).toBe(1);
  expect(await sweepAfter(1)).toBe(2);
});

test('low-water mark sweeper: rests twenty times as long as a slow sweep, and warns once', async () => {
  const { state, sweepAfter } = setUp();
  state.tookMs = 2_000;
  expect(await sweepAfter(0)).toBe(1);
  expect(await sweepAfter(39_999)).toBe(1);
  expect(await sweepAfter(1)).toBe(2);
  expect(state.warnings).toBe(1);
  state.tookMs = 10;
  expect(await sweepAfter(40_000)).toBe(3);
  state.tookMs = 2_000;
  expect(await sweepAfter(1_000)).toBe(4);
  expect(state.warnings).toBe(2);
});

test('low-water mark sweeper: retries a failed sweep', async () => {
  const { state, sweepAfter } = setUp();
  state.fails = true;
  expect(await sweepAfter(0)).toBe(1);
  expect(await sweepAfter(1_000)).toBe(2);
});
