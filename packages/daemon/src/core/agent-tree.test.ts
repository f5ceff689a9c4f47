import { expect, test } from 'vitest';
import { ancestorsOf, descendantsOf } from './agent-tree.js';

test('sessions of earlier versions have their parents alone, and new ones below them all', () => {
  const root = { id: 'a', parent_id: null };
  const old = { id: 'b', parent_id: 'a' };
  const sessions = [{ id: 'd', parent_id: 'c', ancestors: ['c', 'b', 'a'] }, old, root];
  expect(ancestorsOf(sessions, old)).toEqual(['a']);
  expect(ancestorsOf(sessions, root)).toEqual([]);
  expect(ancestorsOf([old], old)).toEqual(['a']);
  expect(descendantsOf(sessions, 'a').map(({ id }) => id)).toEqual(['d', 'b']);
  expect(descendantsOf(sessions, 'c').map(({ id }) => id)).toEqual(['d']);
});
