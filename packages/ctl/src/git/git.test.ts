import { expect, test } from 'vitest';
import { withDashes } from './git.js';

test.each([
  [
    ['-m', 'a'],
    ['git', 'commit', '-m', 'a'],
    ['-m', 'a'],
  ],
  [
    ['-m', 'a', 'mill.txt'],
    ['git', 'commit', '-m', 'a', '--', 'mill.txt'],
    ['-m', 'a', '--', 'mill.txt'],
  ],
  [['mill.txt'], ['git', 'commit', '--', 'mill.txt'], ['--', 'mill.txt']],
  [
    ['a', '--', 'b'],
    ['git', 'commit', '--', 'a', '--', 'b'],
    ['--', 'a', '--', 'b'],
  ],
  [
    ['-m', 'a'],
    ['git', 'commit', '-m', 'a', '--'],
    ['-m', 'a', '--'],
  ],
])('%j of %j is passed on as %j', (args, raw, passed) => {
  expect(withDashes(args, raw)).toEqual(passed);
});
