import { expect, test } from 'vitest';
import { columnOf } from './board.js';

const worktree = '/w';

test.each([
  ['spawning', {}, 'queued'],
  ['rate_limited', {}, 'queued'],
  ['working', {}, 'working'],
  ['waiting_for_input', {}, 'needs_you'],
  ['errored', {}, 'needs_you'],
  ['orphaned', {}, 'needs_you'],
  ['idle', {}, 'review'],
  ['idle', { turn_error: 'overloaded' }, 'needs_you'],
  ['done', {}, 'review'],
  ['done', { worktree: null }, 'done'],
] as const)('board: %s %j is in the column %s', (status, partial, column) => {
  expect(columnOf({ status, worktree, ...partial }, false)).toBe(column);
});

test('board: work that is merged is done', () => {
  expect(columnOf({ status: 'done', worktree }, true)).toBe('done');
  expect(columnOf({ status: 'idle', worktree }, true)).toBe('done');
  expect(columnOf({ status: 'working', worktree }, true)).toBe('working');
  const merged_at = '2026-01-01T00:00:00.000Z';
  expect(columnOf({ status: 'done', worktree, merged_at }, false)).toBe('done');
  expect(columnOf({ status: 'idle', worktree, merged_at }, false)).toBe('done');
  expect(columnOf({ status: 'done', worktree, merged_at: null }, false)).toBe('review');
});
