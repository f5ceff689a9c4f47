import { expect, test } from 'vitest';
import { outputArgs } from './output-args.js';

test.each([
  ['status', 'table', ['status']],
  ['status --json', 'json', ['status']],
  ['-o yaml queue list', 'yaml', ['queue', 'list']],
  ['queue list -o name', 'name', ['queue', 'list']],
  ['queue list -oyaml', 'yaml', ['queue', 'list']],
  ['queue list --output-format=json', 'json', ['queue', 'list']],
  ['queue list --json -o table', 'table', ['queue', 'list']],
  ['queue list -o nonsense', 'table', ['queue', 'list']],
  ['queue work -- cmd -o yaml --json', 'table', ['queue', 'work', 'cmd', 'yaml']],
])('output arguments: %s', (line, format, words) => {
  expect(outputArgs(line.split(' '))).toEqual({ format, words, hasFormat: true, utc: false });
});

test('output arguments: -o of another program is not ours', () => {
  const words = ['git', 'commit', 'yaml'];
  const expected = { format: 'json', words, hasFormat: false, utc: false };
  expect(outputArgs(['git', 'commit', '-o', 'yaml', '--json'])).toEqual(expected);
});

test('output arguments: --utc counts before --, and not for another program', () => {
  expect(outputArgs(['queue', 'list', '--utc']).utc).toBe(true);
  expect(outputArgs(['queue', 'work', '--', 'cmd', '--utc']).utc).toBe(false);
  expect(outputArgs(['git', 'log', '--utc']).utc).toBe(false);
});
