import { createHash } from 'node:crypto';
import { UsageError } from '@millrace/kit/errors';
import { expect, test } from 'vitest';
import { parseKeys } from './access.js';

const sha = (secret: string) => createHash('sha256').update(secret).digest('hex');

function keysFile(...entries: string[]): string {
  return `keys:\n${entries.map((entry) => `  - ${entry}\n`).join('')}`;
}

const entry = (id: string, secret: string, more = '') =>
  `{id: ${id}, secret_sha256: ${sha(secret)}, scopes: [{collections: "*", access: read}]${more}}`;

test('keys: id and secret must both match', () => {
  const keys = parseKeys(keysFile(entry('a', 'one'), entry('b', 'two')), 'keys.yaml');
  expect(keys.size).toBe(2);
  expect(keys.find('a.one', 0)).toMatchObject({ outcome: 'known', principal: { id: 'a' } });
  for (const wrong of ['a.two', 'b.one', 'a', 'a.', '.one', 'one', '', 'a.one.', ' a.one']) {
    expect(keys.find(wrong, 0).outcome).toBe('unknown');
  }
});

test('keys: ids and secrets may contain dots', () => {
  const keys = parseKeys(keysFile(entry('a.b', 'c.d'), entry('a', 'x')), 'keys.yaml');
  expect(keys.find('a.b.c.d', 0)).toMatchObject({ principal: { id: 'a.b' } });
  expect(keys.find('a.x', 0)).toMatchObject({ principal: { id: 'a' } });
});

test('keys: a key is valid until it expires', () => {
  const yaml = keysFile(entry('a', 'one', ', expires_at: 2030-01-01T00:00:00Z'));
  const keys = parseKeys(yaml, 'keys.yaml');
  const end = Date.UTC(2030, 0, 1);
  expect(keys.find('a.one', end - 1).outcome).toBe('known');
  expect(keys.find('a.one', end)).toEqual({ outcome: 'expired', id: 'a' });
  expect(keys.find('a.no', end).outcome).toBe('unknown');
});

test('keys: the hash may be upper case', () => {
  const yaml = `keys: [{id: a, secret_sha256: ${sha('s').toUpperCase()}, scopes: []}]`;
  expect(parseKeys(yaml, 'keys.yaml').find('a.s', 0).outcome).toBe('known');
});

test.each([
  [keysFile(entry('a', 'x'), entry('a', 'y')), /keys\.yaml:3: keys\[1\]\.id is used twice: a/],
  ['keys: [{id: a, secret: s3cret, scopes: []}]', /keys\[0\]\.secret/],
  ['keys: [{id: "a b", secret_sha256: x, scopes: []}]', /keys\[0\]\.id must be 1 to 64/],
  [
    `keys: [{id: a, secret_sha256: ${sha('s')}, scopes: [{collections: "a b", access: read}]}]`,
    /collections must be the name of a collection/,
  ],
  [
    `keys: [{id: a, secret_sha256: ${sha('s')}, scopes: [{collections: a, access: root}]}]`,
    /access must be .*read.*write.*admin/,
  ],
  [keysFile(entry('a', 'x', ', expires_at: soon')), /expires_at must be an RFC 3339/],
  ['key: []', /keys/],
])('%#: keys: an invalid file is refused with file and line', (yaml, text) => {
  expect(() => parseKeys(yaml, 'keys.yaml')).toThrow(UsageError);
  expect(() => parseKeys(yaml, 'keys.yaml')).toThrow(text);
  expect(() => parseKeys(yaml, 'keys.yaml')).not.toThrow(/s3cret/);
});
