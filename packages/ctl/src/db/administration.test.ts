import { expect, test } from 'vitest';
import type { DatabaseStatus } from '@millrace/db/client';
import { plain } from '../render/paint.js';
import type { Outlet } from '../base/terminal.js';
import { statusText } from './administration.js';

const out = { columns: 100, paint: plain } as Outlet;
const url = 'grpc://10.0.0.2:5433';

const leader: DatabaseStatus = {
  role: 'leader',
  state: 'leading',
  epoch: 2,
  seq: 40,
  durableSeq: 40,
  oldestSeq: 1,
  lineageId: 'ab',
  nodeId: 'N2',
  version: '1.0.0',
  durability: 'full',
  auth: 'keys',
  minAcks: 0,
  leaderAddress: '',
  leaderSeq: 40,
  lag: 0,
  lagMs: 0,
  followers: [],
  savedTails: [],
  collections: [],
};

const follower: DatabaseStatus = {
  ...leader,
  role: 'follower',
  state: 'streaming',
  leaderAddress: 'grpc://10.0.0.1:5433',
};

test('a follower shows its leader and how far it is behind', () => {
  expect(statusText({ ...follower, lag: 3, lagMs: 250 }, url, out)).toBe(
    `
server      grpc://10.0.0.2:5433, version 1.0.0
role        follower (streaming)
epoch       2
commit      40; log from 1
durability  full
leader      grpc://10.0.0.1:5433
lag         3 commits, 250ms
node        N2
lineage     ab

No collections yet. The first record creates one.
`.slice(1),
  );
});

test('what a follower knows of a silent leader is what it heard last', () => {
  const { lagMs: _unknown, ...status } = { ...follower, state: 'disconnected' as const, lag: 1 };
  const text = statusText(status, url, out);
  expect(text).toContain('lag         1 commit, since an unknown time, as last reported\n');
});

test('status: says that authentication is off', () => {
  const text = statusText({ ...leader, auth: 'none' }, url, out);
  expect(text).toContain('auth        off: every local user has full access\n');
  expect(statusText(leader, url, out)).not.toMatch(/^auth/m);
});

test('a fenced node says what to do', () => {
  const text = statusText({ ...follower, role: 'fenced', state: 'fenced' }, url, out);
  expect(text).toContain('start it with --follow');
  expect(text).toContain('leader      grpc://10.0.0.1:5433\n');
  expect(text).not.toMatch(/^lag /m);
});

test('a leader that waits for more followers than it has says that writes fail', () => {
  const known = { followerId: 'N1', ackedSeq: 40, lag: 0, address: 'grpc://10.0.0.1:5433' };
  const connected = { ...known, connectedAt: new Date(0), lastAckAt: new Date(0) };
  const textOf = (followers: DatabaseStatus['followers']) =>
    statusText({ ...leader, minAcks: 1, followers }, url, out);
  expect(textOf([connected])).toContain('min acks    1\n');
  expect(textOf([known])).toContain('min acks    1, with 0 followers: writes fail\n');
});

test('saved tails are listed with their files', () => {
  const tail = { file: 'tail-1-3-5.jsonl', firstSeq: 3, lastSeq: 5, epoch: 1 };
  const text = statusText({ ...leader, savedTails: [{ ...tail, savedAt: new Date(0) }] }, url, out);
  expect(text).toMatch(/tail-1-3-5\.jsonl +3 to 5 +1 +1970-01-01T00:00:00\.000Z/);
});
