import { expect, test } from 'vitest';
import { UsageError } from '../base/errors.js';
import { editYaml } from './edit-yaml.js';

test.each([
  ['an empty file', '', 'tokens:\n  warn: 150k\n'],
  ['a group without members', 'tokens:\nmetrics: true\n', 'metrics: true\ntokens:\n  warn: 150k\n'],
  ['a value with a comment', 'tokens:\n  warn: 1k # low\n', 'tokens:\n  warn: 150k # low\n'],
  ['a dotted key', 'tokens.warn: 1k\n', 'tokens.warn: 150k\n'],
  ['a flow map', 'tokens: { guard: true }\n', 'tokens: { guard: true, warn: 150k }\n'],
])('editYaml: sets a value in %s', (_name, before, after) => {
  expect(editYaml(before, [{ path: ['tokens', 'warn'], value: '150k' }])).toBe(after);
});

test('editYaml: removes a key and ignores one that is not there', () => {
  const text = '# mine\ntokens:\n  warn: 1k\n  guard: false\n';
  const changes = [['tokens', 'warn'], ['notify', 'enabled'], ['metrics']];
  expect(
    editYaml(
      text,
      changes.map((path) => ({ path, value: undefined })),
    ),
  ).toBe('# mine\ntokens:\n  guard: false\n');
});

test('editYaml: refuses to replace an alias, which would lose its other members', () => {
  const text = 'base: &base\n  guard: true\ntokens: *base\n';
  expect(() => editYaml(text, [{ path: ['tokens', 'warn'], value: 1 }])).toThrow(UsageError);
});
