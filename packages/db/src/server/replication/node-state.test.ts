import { expect, test } from 'vitest';
import { nowhere, roleAtStart, type NodeState } from './node-state.js';

const [a, b] = ['grpc://a:5433', 'grpc://b:5433'];

test.each<[what: string, place: Partial<NodeState>, follow: string | undefined, role: string]>([
  ['a new node leads', {}, undefined, 'leader'],
  ['a new node with follow is a follower', {}, a, 'follower'],
  ['a follower stays a follower', { role: 'follower', leader: a }, a, 'follower'],
  ['a follower may follow another leader', { role: 'follower', leader: a }, b, 'follower'],
  ['a follower without follow is fenced', { role: 'follower', leader: a }, undefined, 'fenced'],
  ['a promoted node keeps leading', { role: 'leader', followed: a }, a, 'leader'],
  [
    'a promoted node without follow keeps leading',
    { role: 'leader', followed: a },
    undefined,
    'leader',
  ],
  ['a promoted node follows a different leader', { role: 'leader', followed: a }, b, 'follower'],
  ['a fenced node stays fenced', { role: 'fenced', leader: b }, undefined, 'fenced'],
  ['or follows', { role: 'fenced', leader: b }, b, 'follower'],
  [
    'a fenced node may follow its old leader',
    { role: 'fenced', leader: a, followed: a },
    a,
    'follower',
  ],
])('%s', (_what, place, follow, role) => {
  expect(roleAtStart({ ...nowhere, ...place }, follow)).toBe(role);
});
