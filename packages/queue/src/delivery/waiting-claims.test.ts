import { expect, test } from 'vitest';
import { type PullRequest, WaitingClaim, WaitingClaims } from './waiting-claims.js';

function setUp() {
  const waiting = new WaitingClaims();
  const add = (worker: string, handlers?: string[], more: Partial<PullRequest> = {}) => {
    const request = { worker, principal: 'ada', remoteIp: null, limit: 1, waitMs: 30_000 };
    const claim: WaitingClaim = new WaitingClaim(
      { ...request, leaseMs: 1_000, handlers, ...more },
      worker,
      () => waiting.remove(claim),
    );
    waiting.add(claim);
    return claim;
  };
  /** Tries every claim that can be served, as if the store had nothing; returns their workers. */
  const tried = () => {
    const workers: string[] = [];
    for (let claims = waiting.nextAlike(200); claims.length > 0; claims = waiting.nextAlike(200)) {
      workers.push(...claims.map(({ request }) => request.worker));
      waiting.drained(claims[0]!);
    }
    return workers;
  };
  return { waiting, add, tried };
}

test('wake: tries only claims that name the handler or have no filter', () => {
  const { waiting, add, tried } = setUp();
  add('a', ['a']);
  add('b', ['b', 'c']);
  add('any');
  expect(tried()).toEqual(['a', 'b', 'any']);
  expect(waiting.canBeServed).toBe(false);
  waiting.wake(new Set(['c']));
  expect(tried()).toEqual(['b', 'any']);
  waiting.wake(new Set(['unknown']));
  expect(tried()).toEqual(['any']);
  waiting.wake(new Set());
  expect(tried()).toEqual([]);
  waiting.wake();
  expect(tried().toSorted()).toEqual(['a', 'any', 'b']);
});

test('drained: a claim that comes later waits for work, unless it does not wait', () => {
  const { waiting, add, tried } = setUp();
  const first = add('first', ['a']);
  expect(tried()).toEqual(['first']);
  first.end([]);
  const later = add('later', ['a']);
  expect(waiting.canBeServed).toBe(false);
  add('other', ['b']);
  expect(tried()).toEqual(['other']);
  later.end([]);
  add('impatient', ['a'], { waitMs: 0 });
  expect(tried()).toEqual(['impatient']);
  waiting.wake(new Set());
  expect(waiting.canBeServed).toBe(false);
  waiting.wake(new Set(['a']));
  expect(tried()).toEqual(['impatient']);
  add('fresh');
  expect(tried()).toEqual(['fresh']);
});

test('drained: one claim of the store answers for every filter with the same handler', () => {
  const { waiting, add, tried } = setUp();
  for (let i = 0; i < 12_000; i++) add(`w${i}`, ['shared', `own${i}`]);
  expect(tried()).toHaveLength(12_000);
  waiting.wake(new Set(['shared']));
  expect(tried()).toHaveLength(1);
});

test('served: claims that share a handler take turns in getting tasks', () => {
  const { waiting, add, tried } = setUp();
  const first = add('w1', ['shared', 'a']);
  add('w2', ['shared', 'b']);
  expect(tried()).toEqual(['w1', 'w2']);
  waiting.wake(new Set(['shared']));
  expect(tried()).toEqual(['w1']);
  waiting.served(first);
  waiting.wake(new Set(['shared']));
  expect(tried()).toEqual(['w2']);
  waiting.wake(new Set(['shared']));
  expect(tried()).toEqual(['w2']);
});

test('claims: those with the same filter are served together, in the order of arrival', () => {
  const { waiting, add } = setUp();
  const first = add('w1', ['a', 'b']);
  add('w2', ['b', 'a']);
  add('w3', ['a', 'b'], { leaseMs: 2_000 });
  expect(waiting.nextAlike(200).map(({ workerKey }) => workerKey)).toEqual(['w1', 'w2']);
  expect(waiting.countOf('ada')).toBe(3);
  first.end([]);
  expect(waiting.countOf('ada')).toBe(2);
  waiting.end();
  expect([waiting.countOf('ada'), waiting.canBeServed]).toEqual([0, false]);
});

test('claims: one of a congested connection ends without tasks, and others are served', () => {
  const { waiting, add } = setUp();
  const stuck = add('stuck', ['a'], { isCongested: () => true });
  add('w1', ['a']);
  expect(waiting.nextAlike(200).map(({ workerKey }) => workerKey)).toEqual(['w1']);
  expect(stuck.isOver).toBe(true);
});
