import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { seededRandom, systemRandom } from '../base/clock-and-random.js';
import { bearerToken, hashSecret, newToken, sameHash } from './tokens.js';

test('a token has a prefix to find it by, an id and 256 bits of chance', () => {
  const { id, token, sha256 } = newToken(systemRandom);
  expect(token).toMatch(/^mr_[0-9a-hjkmnp-tv-z]{13}_[0-9a-hjkmnp-tv-z]{52}$/);
  expect(token).toContain(`_${id}_`);
  expect(sha256).toBe(createHash('sha256').update(token).digest('hex'));
  expect(newToken(systemRandom).token).not.toBe(token);
});

test('a seed makes the same token again', () => {
  expect(newToken(seededRandom(7))).toEqual(newToken(seededRandom(7)));
});

test('hashes are compared whole and only when they are hashes', () => {
  const hash = hashSecret('a');
  expect(sameHash(hash, hash.toUpperCase())).toBe(true);
  expect(sameHash(hash, hashSecret('b'))).toBe(false);
  expect(sameHash('', '')).toBe(false);
  expect(sameHash(hash, hash.slice(2))).toBe(false);
});

test.each([
  ['Bearer abc', 'abc'],
  ['bearer  mr_1-2.3~4+5/6==', 'mr_1-2.3~4+5/6=='],
  ['BEARER abc ', 'abc'],
  ['Bearer', undefined],
  ['Bearer ', undefined],
  ['Bearer a b', undefined],
  ['Basic abc', undefined],
  ['Bearerabc', undefined],
  [`Bearer ${'x'.repeat(600)}`, undefined],
  [undefined, undefined],
])('%j holds the token %j', (header, token) => {
  expect(bearerToken(header)).toBe(token);
});
