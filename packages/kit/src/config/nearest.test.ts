import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { editDistance, nearest } from './nearest.js';

test.each([
  ['', '', 0],
  ['abc', 'abc', 0],
  ['abc', 'acb', 1],
  ['abc', 'ab', 1],
  ['kitten', 'sitting', 3],
  ['', 'abc', 3],
])('from %j to %j it is %d steps', (from, to, steps) => {
  expect(editDistance(from, to)).toBe(steps);
});

test('the way back is as long, and never longer than the longer word', () => {
  const word = fc.string({ maxLength: 12 });
  fc.assert(
    fc.property(word, word, (a, b) => {
      const distance = editDistance(a, b);
      expect(editDistance(b, a)).toBe(distance);
      expect(distance).toBeLessThanOrEqual(Math.max(a.length, b.length));
      expect(distance === 0).toBe(a === b);
    }),
  );
});

test('a slip finds the word that was meant, a different word finds none', () => {
  const known = ['listen', 'tokens_file', 'secrets_file', 'data'];
  expect(nearest('lsiten', known)).toBe('listen');
  expect(nearest('tokensFile', known)).toBe('tokens_file');
  expect(nearest('token-file', known)).toBe('tokens_file');
  expect(nearest('dat', known)).toBe('data');
  expect(nearest('zebra', known)).toBeUndefined();
  expect(nearest('x', known)).toBeUndefined();
  expect(nearest('', known)).toBeUndefined();
});
