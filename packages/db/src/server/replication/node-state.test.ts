import { expect, test } from 'vitest';
import { nowhere, roleAtStart, type NodeState } from './node-state.js';

const [a, b] = ['grpc://a:5433', 'grpc://b:5433'];

test.each<[what: string, place: Partial<NodeState>, follow: string | undefined, role: string]>([
  ['a new node leads', {}, undefined, 'leader'],
  ['or follows whom it is told to', {}, a, 'follower'],
  ['one that followed goes on', { role: 'follower', leader: a }, a, 'follower'],
  ['or follows another', { role: 'follower', leader: a }, b, 'follower'],
  ['but does not lead untold', { role: 'follower', leader: a }, undefined, 'fenced'],
  ['one that was promoted leads on', { role: 'leader', followed: a }, a, 'leader'],
  ['also when it is told nobody', { role: 'leader', followed: a }, undefined, 'leader'],
  ['until it is told somebody else', { role: 'leader', followed: a }, b, 'follower'],
  ['a fenced one stays so', { role: 'fenced', leader: b }, undefined, 'fenced'],
  ['or follows', { role: 'fenced', leader: b }, b, 'follower'],
  ['also its old leader', { role: 'fenced', leader: a, followed: a }, a, 'follower'],
])('%s', (_what, place, follow, role) => {
  expect(roleAtStart({ ...nowhere, ...place }, follow)).toBe(role);
});
