import { memoryLog } from '@millrace/kit/log';
import { expect, test } from 'vitest';
import { ManualClock } from '../../../../engine/test/manual-clock.test-support.js';
import { FollowState } from './node-state.js';

test('follow state: lag in commits and milliseconds', () => {
  const clock = new ManualClock();
  let seq = 10;
  const state = new FollowState(clock, memoryLog(), () => seq);
  expect([state.lag, state.lagMs]).toEqual([0, undefined]);
  state.enter('streaming');
  state.onLeaderSeq(10);
  expect([state.lag, state.lagMs]).toEqual([0, 0]);
  clock.skip(500);
  state.onLeaderSeq(14);
  expect([state.lag, state.lagMs, state.leaderSeq]).toEqual([4, 500, 14]);
  clock.skip(100);
  seq = 12;
  state.check();
  expect([state.lag, state.lagMs]).toEqual([2, 600]);
  seq = 14;
  state.check();
  expect([state.lag, state.lagMs]).toEqual([0, 0]);
});

test('follow state: uses the saved leader position before the first contact', () => {
  let seq = 10;
  const state = new FollowState(new ManualClock(), memoryLog(), () => seq, 14);
  expect([state.lag, state.lagMs, state.leaderSeq]).toEqual([4, undefined, 14]);
  // After a failover the leader may have fewer commits: its latest value counts.
  state.onLeaderSeq(11);
  expect(state.lag).toBe(1);
  seq = 12;
  expect(state.lag).toBe(0);
});

test('follow state: lag grows while the leader is silent', () => {
  const clock = new ManualClock();
  const state = new FollowState(clock, memoryLog(), () => 3);
  state.enter('streaming');
  state.onLeaderSeq(3);
  state.enter('disconnected', {}, 'cut');
  clock.skip(7_000);
  expect([state.lag, state.lagMs]).toEqual([0, 7_000]);
});

test('follow state: logs each change and each new problem once', () => {
  const log = memoryLog();
  const state = new FollowState(new ManualClock(), log, () => 1);
  state.enter('bootstrapping', { leader: 'x' });
  state.enter('streaming');
  for (let n = 0; n < 5; n++) state.enter('disconnected', {}, 'cut');
  state.enter('disconnected', {}, 'refused');
  state.enter('streaming');
  expect(log.lines.map(({ level, message }) => `${level} ${message}`)).toEqual([
    'info copying from leader',
    'info streaming from leader',
    'warn disconnected from leader',
    'warn disconnected from leader',
    'info streaming from leader',
  ]);
});
