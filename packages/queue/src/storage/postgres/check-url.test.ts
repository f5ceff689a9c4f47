import { expect, test } from 'vitest';
import { settingsProblem } from './open.js';

const failure = (message: string, code?: string) => Object.assign(new Error(message), { code });

test.each([
  [failure('password authentication failed', '28P01'), /^PostgreSQL says: password/],
  [failure('permission denied for database a', '42501'), /CREATE SCHEMA millrace AUTHORIZATION/],
  [failure('self-signed certificate', 'DEPTH_ZERO_SELF_SIGNED_CERT'), /not trusted: .*sslrootcert/],
  [failure('altnames', 'ERR_TLS_CERT_ALTNAME_INVALID'), /not trusted/],
  [failure('The server does not support SSL connections'), /sslmode=disable/],
])('%s is a mistake in the settings', (error, words) => {
  expect(settingsProblem(error)).toMatch(words);
});

test.each([
  failure('connect ECONNREFUSED', 'ECONNREFUSED'),
  failure('the database system is starting up', '57P03'),
  failure('too many connections', '53300'),
  failure('timeout expired'),
])('%s is waited for', (error) => {
  expect(settingsProblem(error)).toBeUndefined();
});
