import { systemClock } from '@millrace/kit/clock';
import { expect, test } from 'vitest';
import { LeaderChoice, type NodeRole } from './leader-choice.js';

const a = new URL('http://a.example:1');
const b = new URL('http://b.example:2');

/** A choice between two nodes with these roles; undefined does not answer. */
function choiceOf(roles: Record<string, NodeRole | undefined>) {
  const queried: string[] = [];
  let now = 0;
  const choice = new LeaderChoice({
    urls: [a, b],
    clock: { ...systemClock, monotonic: () => now },
    roleOf: async ({ hostname }) => {
      queried.push(hostname);
      const found = roles[hostname];
      if (!found) throw new Error('no answer');
      return found;
    },
  });
  return { choice, queried, roles, skip: (ms: number) => (now += ms) };
}

const leader = { role: 'leader', epoch: 1 };
const follower = { role: 'follower', epoch: 1 };

test('one address is taken without a question', async () => {
  const roleOf = () => Promise.reject(new Error('queried'));
  const choice = new LeaderChoice({ urls: [a], roleOf, clock: systemClock });
  expect(await choice.url()).toBe(a);
});

test('the leader is chosen, and kept for a second', async () => {
  const { choice, queried, skip } = choiceOf({ 'a.example': follower, 'b.example': leader });
  expect(await Promise.all([choice.url(), choice.url()])).toEqual([b, b]);
  skip(900);
  expect(await choice.url()).toBe(b);
  expect(queried).toHaveLength(2);
  skip(200);
  await choice.url();
  expect(queried).toHaveLength(4);
});

test('after a failure the new leader is found at once', async () => {
  const { choice, roles } = choiceOf({ 'a.example': follower, 'b.example': leader });
  expect(await choice.url()).toBe(b);
  roles['a.example'] = { role: 'leader', epoch: 2 };
  roles['b.example'] = undefined;
  choice.forget();
  expect(await choice.url()).toBe(a);
});

test('of two nodes that say they lead, the newer epoch counts', async () => {
  const newer = { role: 'leader', epoch: 2 };
  const { choice } = choiceOf({ 'a.example': leader, 'b.example': newer });
  expect(await choice.url()).toBe(b);
});

test('without a leader a node that answers is chosen, and queried again next time', async () => {
  const { choice, queried } = choiceOf({ 'a.example': undefined, 'b.example': follower });
  expect(await choice.url()).toBe(b);
  expect(await choice.url()).toBe(b);
  expect(queried).toHaveLength(4);
  expect(await choiceOf({}).choice.url()).toBe(a);
});
