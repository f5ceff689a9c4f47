import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { messageOf, UsageError } from '../base/errors.js';
import { seededRandom } from '../base/clock-and-random.js';
import { hashSecret, newToken, parseTokens, tokenEntryYaml } from './tokens.js';

const roles = ['submitter', 'operator', 'admin'] as const;
const read = (yaml: string) => parseTokens(yaml, 'tokens.yaml', roles);
const hash = hashSecret('opensesame');
const entry = (fields: string) => `tokens:\n  - {id: ci, principal: build, ${fields}}\n`;

test('a token is found by its hash, with its holder', () => {
  const tokens = read(entry(`token_sha256: ${hash}, grants: [{queue: "mail.*", role: operator}]`));
  expect(tokens.size).toBe(1);
  const found = tokens.find('opensesame', 0);
  if (found.outcome !== 'known') throw new Error('not found');
  expect(found.holder).toMatchObject({ id: 'ci', principal: 'build', expiresAt: undefined });
  expect(found.holder.grants.allows('mail.out', 'operator')).toBe(true);
  expect(tokens.find('opensesame ', 0).outcome).toBe('unknown');
  expect(tokens.find(hash, 0).outcome).toBe('unknown');
  expect(tokens.find('', 0).outcome).toBe('unknown');
});

test('a hash may be written in upper case', () => {
  const tokens = read(entry(`token_sha256: ${hash.toUpperCase()}, grants: []`));
  expect(tokens.find('opensesame', 0).outcome).toBe('known');
});

test('a token is refused from its expiry on', () => {
  const tokens = read(entry(`token_sha256: ${hash}, grants: [], expires_at: 2030-01-01T00:00:00Z`));
  const expiry = Date.parse('2030-01-01T00:00:00Z');
  expect(tokens.find('opensesame', expiry - 1).outcome).toBe('known');
  expect(tokens.find('opensesame', expiry).outcome).toBe('expired');
});

test('a token that was sent before is held against its expiry again', () => {
  const tokens = read(entry(`token_sha256: ${hash}, grants: [], expires_at: 2030-01-01T00:00:00Z`));
  const expiry = Date.parse('2030-01-01T00:00:00Z');
  const found = [expiry - 2, expiry - 1, expiry].map((now) => tokens.find('opensesame', now));
  expect(found.map(({ outcome }) => outcome)).toEqual(['known', 'known', 'expired']);
  expect(tokens.find('opensesame!', expiry - 1).outcome).toBe('unknown');
});

test('a token in clear works and is warned about without being shown', () => {
  const tokens = read(entry('token: opensesame, grants: []'));
  expect(tokens.find('opensesame', 0).outcome).toBe('known');
  expect(tokens.warnings).toEqual([
    'tokens.yaml:2: token ci is stored in clear text; replace it with its SHA-256 as token_sha256',
  ]);
});

test('a token in clear may be as short as one of which only the hash is known', () => {
  const tokens = read(entry('token: dev, grants: []'));
  expect(tokens.find('dev', 0).outcome).toBe('known');
});

test.each([
  ['', 'tokens.yaml: tokens is missing'],
  ['tokens: [', 'tokens.yaml:1'],
  ['tokens: {}', 'tokens.yaml:1: tokens must be a list'],
  [entry('grants: []'), 'tokens.yaml:2: tokens[0].id needs either token_sha256 or'],
  [entry(`token: opensesame, token_sha256: ${hash}, grants: []`), 'needs either token_sha256'],
  [
    entry('token_sha256: abc, grants: []'),
    'tokens.yaml:2: tokens[0].token_sha256 must be the 64 hex digits of the SHA-256',
  ],
  [entry(`token_sha256: ${hash}`), 'tokens.yaml:2: tokens[0].grants is missing'],
  [
    entry(`token_sha256: ${hash}, grants: [{queue: mail, role: operater}]`),
    'tokens[0].grants[0].role must be one of submitter, operator or admin',
  ],
  [
    entry(`token_sha256: ${hash}, grants: [{queue: "mail/x", role: admin}]`),
    'tokens[0].grants[0].queue must be a queue name',
  ],
  [entry(`token_sha256: ${hash}, grant: []`), 'unknown key "tokens[0].grant"'],
  [entry(`token_sha256: ${hash}, grants: [], expires_at: soon`), 'must be an RFC 3339 timestamp'],
  [
    `${entry(`token_sha256: ${hash}, grants: []`)}  - {id: ci, principal: x, token: 12345678x, grants: []}`,
    'tokens.yaml:3: tokens[1].id is used twice: ci',
  ],
  [
    `${entry(`token_sha256: ${hash}, grants: []`)}  - {id: b, principal: x, token: opensesame, grants: []}`,
    'tokens.yaml:3: tokens[1].token is the token of another entry',
  ],
])('%j is refused with its place', (yaml, message) => {
  expect(() => read(yaml)).toThrow(UsageError);
  expect(() => read(yaml)).toThrow(message);
});

test('no message shows a value of the file', () => {
  const secret = 'mr_secret_in_the_wrong_place';
  let message = '';
  try {
    read(`tokens:\n  - {id: ci, principal: [${secret}], token_sha256: ${secret}, x: ${secret}}`);
  } catch (error) {
    message = messageOf(error);
  }
  expect(message).toContain('tokens[0].token_sha256');
  expect(message).not.toContain(secret);
});

test('a new token is written as an entry that reads back', () => {
  const { id, token, sha256 } = newToken(seededRandom(1));
  const grants = [{ queue: 'payments.*', role: 'operator' }] as const;
  const yaml = tokenEntryYaml({
    id,
    principal: 'Ada: "on call"',
    token_sha256: sha256,
    grants,
    expires_at: '2030-01-01T00:00:00Z',
  });
  expect(yaml).not.toContain(token);
  const file = `tokens:\n${yaml}\n`;
  expect(parse(file)).toMatchObject({ tokens: [{ id, grants }] });
  expect(read(file).find(token, 0)).toMatchObject({
    outcome: 'known',
    holder: { principal: 'Ada: "on call"' },
  });
});
