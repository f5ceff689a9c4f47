import { expect, test } from 'vitest';
import type { Commit } from '../format/record.js';
import { emptyHash } from '../value/bytes.js';
import { RecentCommits } from './log-reader.js';

function commit(seq: number): Commit {
  return { seq, at: 0, epoch: 1, chain: emptyHash, changes: [] };
}

function cachedSeqs(recent: RecentCommits<{ commit: Commit; bytes: number }>, most = 50): number[] {
  return Array.from({ length: most }, (_, seq) => seq).filter((seq) => recent.find(seq));
}

function filled(seqs: readonly number[], maxBytes = 1_000) {
  const recent = new RecentCommits<{ commit: Commit; bytes: number }>(8, maxBytes);
  for (const seq of seqs) recent.keep({ commit: commit(seq), bytes: 10 });
  return recent;
}

test('the newest commits are kept, as many as there are places', () => {
  expect(cachedSeqs(filled([1, 2, 3]))).toEqual([1, 2, 3]);
  expect(cachedSeqs(filled([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]))).toEqual([3, 4, 5, 6, 7, 8, 9, 10]);
});

test('an older commit does not take the place of a newer one', () => {
  const recent = filled([10, 11, 2, 4]);
  expect(cachedSeqs(recent)).toEqual([4, 10, 11]);
});

test('another commit of the same number takes its place', () => {
  const recent = filled([1, 2]);
  const other = { commit: commit(2), bytes: 10 };
  recent.keep(other);
  expect(recent.find(2)).toBe(other);
});

test('what was delivered is forgotten, whether it was read in order or not', () => {
  const recent = filled([20, 21, 22, 11, 15]);
  recent.forgetTo(21);
  expect(cachedSeqs(recent)).toEqual([22]);
  recent.keep({ commit: commit(23), bytes: 10 });
  recent.forgetTo(20);
  expect(cachedSeqs(recent)).toEqual([22, 23]);
  recent.forgetTo(1_000_000);
  expect(cachedSeqs(recent)).toEqual([]);
});

test('there is never more than the bytes allow', () => {
  const recent = filled([1, 2, 3], 30);
  expect(cachedSeqs(recent)).toEqual([1, 2, 3]);
  recent.keep({ commit: commit(4), bytes: 10 });
  expect(cachedSeqs(recent)).toEqual([4]);
  recent.forgetTo(4);
  for (const seq of [5, 6, 7]) recent.keep({ commit: commit(seq), bytes: 10 });
  expect(cachedSeqs(recent)).toEqual([5, 6, 7]);
});

test('after all is forgotten, commits may bear numbers that were there before', () => {
  const recent = filled([1, 2, 3]);
  recent.forgetTo(3);
  recent.clear();
  recent.keep({ commit: commit(2), bytes: 10 });
  expect(cachedSeqs(recent)).toEqual([2]);
  recent.forgetTo(2);
  expect(cachedSeqs(recent)).toEqual([]);
});
