import { create } from '@bufbuild/protobuf';
import { PeerSchema } from '@millrace/contract/db';
import { memoryLog, silentLog } from '@millrace/kit/log';
import { expect, test } from 'vitest';
import { ManualClock } from '../../../../engine/test/manual-clock.test-support.js';
import type { CallContext } from '../service/call.js';
import { Followers } from './followers.js';

const peer = (nodeId: string, seq: number) =>
  create(PeerSchema, { nodeId, ackedSeq: BigInt(seq), address: `grpc://${nodeId}` });
const contextOf = (deadline?: number) => ({ deadline }) as CallContext;

test('followers: a write needs acks of distinct followers', async () => {
  const followers = new Followers(new ManualClock(), silentLog, 2);
  let isConfirmed = false;
  const confirmed = followers.confirmed(5, contextOf())?.then(() => (isConfirmed = true));
  followers.onAck(peer('a', 5));
  followers.onAck(peer('a', 6));
  followers.onAck(peer('b', 4));
  await Promise.resolve();
  expect(isConfirmed).toBe(false);
  followers.onAck(peer('b', 5));
  await confirmed;
  expect(followers.confirmed(5, contextOf())).toBeUndefined();
  const next = followers.confirmed(6, contextOf());
  followers.rejectWaiters();
  await expect(next).rejects.toMatchObject({ code: 'NOT_ENOUGH_ACKS' });
});

test('followers: a follower that rolls back no longer counts', () => {
  const followers = new Followers(new ManualClock(), silentLog, 1);
  followers.onAck(peer('a', 9));
  expect(followers.confirmed(9, contextOf())).toBeUndefined();
  followers.onAck(peer('a', 3));
  followers.confirmed(9, contextOf())?.catch(() => undefined);
  expect(followers.all).toMatchObject([{ followerId: 'a', ackedSeq: 3 }]);
  followers.rejectWaiters();
});

test('followers: the wait ends before the deadline, or after five seconds', async () => {
  const clock = new ManualClock();
  const followers = new Followers(clock, silentLog, 1);
  const outcomes: string[] = [];
  const wait = (name: string, deadline?: number) =>
    followers
      .confirmed(7, contextOf(deadline))
      ?.catch((error: { code: string; extra: object }) => outcomes.push(`${name} ${error.code}`));
  const all = [wait('short', clock.now() + 1_000), wait('none')];
  clock.advance(899);
  await Promise.resolve();
  expect(outcomes).toEqual([]);
  clock.advance(1);
  await all[0];
  expect(outcomes).toEqual(['short NOT_ENOUGH_ACKS']);
  clock.advance(4_100);
  await all[1];
  expect(outcomes).toEqual(['short NOT_ENOUGH_ACKS', 'none NOT_ENOUGH_ACKS']);
  expect(clock.timers).toBe(0);
});

test('followers: connected while one of its streams is open', () => {
  const log = memoryLog();
  const followers = new Followers(new ManualClock(), log, 0);
  const [first, second] = [new AbortController(), new AbortController()];
  const pins: { seq: number }[] = [];
  const pinLog = (seq: number) => {
    const pin = { seq, release: () => pins.splice(pins.indexOf(pin), 1) };
    pins.push(pin);
    return pin;
  };
  followers.onStream(peer('a', 1), first.signal, pinLog);
  followers.onStream(peer('a', 1), second.signal, pinLog);
  followers.onAck(peer('a', 7));
  expect(pins).toMatchObject([{ seq: 8 }]);
  first.abort();
  expect(followers.connected).toBe(1);
  expect(followers.all[0]!.connectedAt).toBeDefined();
  second.abort();
  expect(followers.connected).toBe(0);
  expect(pins).toEqual([]);
  expect(followers.all[0]!.connectedAt).toBeUndefined();
  expect(log.lines.filter(({ message }) => message === 'follower disconnected')).toHaveLength(1);
});

test('followers: limits remembered followers, but not connected ones', () => {
  const followers = new Followers(new ManualClock(), silentLog, 0);
  const pinLog = (seq: number) => ({ seq, release: () => undefined });
  followers.onStream(peer('keeps', 1), new AbortController().signal, pinLog);
  for (let n = 0; n < 1_000; n++) followers.onAck(peer(`n${n}`, 1));
  expect(followers.all.length).toBeLessThanOrEqual(256);
  expect(followers.all.map(({ followerId }) => followerId)).toContain('keeps');
});
