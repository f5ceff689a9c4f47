import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { UsageError } from '../base/errors.js';
import { addressOf, addressText, isLoopback } from './address.js';

test.each([
  ['127.0.0.1:8080', { host: '127.0.0.1', port: 8080 }],
  ['localhost:0', { host: 'localhost', port: 0 }],
  ['db.example.com:65535', { host: 'db.example.com', port: 65_535 }],
  ['[::1]:5433', { host: '::1', port: 5433 }],
  ['[fe80::1%eth0]:1', { host: 'fe80::1%eth0', port: 1 }],
  ['[::]:80', { host: '::', port: 80 }],
])('%s', (text, expected) => {
  expect(addressOf(text)).toEqual(expected);
  expect(addressText(expected)).toBe(text);
});

test.each([
  ['', 'the port is missing'],
  ['localhost', 'the port is missing'],
  [':8080', 'the host is missing'],
  ['::1', 'put an IPv6 address in brackets'],
  ['::1:8080', 'put an IPv6 address in brackets'],
  ['[::1]', 'put an IPv6 address in brackets'],
  ['[localhost]:80', 'is not an IPv6 address'],
  ['[]:80', 'is not an IPv6 address'],
  ['localhost:', 'the port must be a whole number from 0 to 65535'],
  ['localhost:65536', 'the port must be'],
  ['localhost:-1', 'the port must be'],
  ['localhost:8o80', 'the port must be'],
  ['localhost:80.5', 'the port must be'],
  ['localhost: 80', 'the port must be'],
  ['999.1.1.1:80', 'is not a host'],
  ['1.2.3:80', 'is not a host'],
  ['a b:80', 'is not a host'],
  ['user@host:80', 'is not a host'],
  ['-x:80', 'is not a host'],
  ['http://localhost', 'leave out the scheme'],
  ['localhost:80/v1', 'leave out the scheme and the path'],
])('%j is refused and told why', (text, expected) => {
  expect(() => addressOf(text)).toThrow(UsageError);
  expect(() => addressOf(text)).toThrow(expected);
});

test('every IP address and port survives being written and read', () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), fc.nat({ max: 65_535 }), (host, port) => {
      expect(addressOf(addressText({ host, port }))).toEqual({ host, port });
    }),
  );
});

test.each([
  ['127.0.0.1', true],
  ['127.255.0.9', true],
  ['localhost', true],
  ['LOCALHOST.', true],
  ['a.localhost', true],
  ['::1', true],
  ['[::1]', true],
  ['0:0:0:0:0:0:0:1', true],
  ['::ffff:127.0.0.1', true],
  ['0.0.0.0', false],
  ['::', false],
  ['10.0.0.1', false],
  ['::ffff:10.0.0.1', false],
  ['::2', false],
  ['2001:db8::1', false],
  ['1::1', false],
  ['127.0.0.1.example.com', false],
  ['127.0.0.999', false],
  ['localhost.example.com', false],
  ['', false],
])('%j is loopback: %s', (host, expected) => {
  expect(isLoopback(host)).toBe(expected);
});
