import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseTarget } from './target.js';

function read(url: string) {
  const result = parseTarget(url);
  if (!result.ok) throw new Error(result.reason);
  return result.target;
}

test.each([
  ['http://2130706433/', '127.0.0.1'],
  ['http://0x7f.1/', '127.0.0.1'],
  ['http://0177.0.0.1/', '127.0.0.1'],
  ['http://127.1/', '127.0.0.1'],
  ['http://127.0.0.1./', '127.0.0.1'],
  ['http://１２７.０.０.１/', '127.0.0.1'],
  ['http://%31%32%37.0.0.1/', '127.0.0.1'],
  ['http://①②⑦.0.0.1/', '127.0.0.1'],
  ['http://127。0。0。1/', '127.0.0.1'],
  ['http://[0:0:0:0:0:0:0:1]/', '::1'],
  ['http://[::FFFF:127.0.0.1]/', '::ffff:7f00:1'],
])('%s is the address %s', (url, host) => {
  expect(read(url)).toMatchObject({ host, isAddress: true });
});

test.each([
  ['HTTP://EXAMPLE.COM', 'http://example.com', '/'],
  ['http://example.com./a', 'http://example.com', '/a'],
  ['https://example.com:443/a?b=c#d', 'https://example.com', '/a?b=c'],
  ['http://example.com:8080', 'http://example.com:8080', '/'],
  ['https://bücher.example/', 'https://xn--bcher-kva.example', '/'],
  ['http://example.com/a/../b', 'http://example.com', '/b'],
  ['http://example.com/a/%2e%2E/b', 'http://example.com', '/b'],
  ['http://example.com\\a\\..\\b', 'http://example.com', '/b'],
  ['http://example.com//a', 'http://example.com', '//a'],
  [' http://exa\tmple.com/\n', 'http://example.com', '/'],
  ['http://my_service/', 'http://my_service', '/'],
  ['http://[::1]:9000/x', 'http://[::1]:9000', '/x'],
])('%s goes to %s and asks for %s', (url, origin, path) => {
  expect(read(url)).toMatchObject({ origin, path });
});

test.each([
  ['http://user@example.com/', 'user name'],
  ['http://user:secret@example.com/', 'user name'],
  ['http://:secret@example.com/', 'user name'],
  ['http://example.com@127.0.0.1/', 'user name'],
  ['ftp://example.com/', 'http:// or https://'],
  ['file:///etc/passwd', 'http:// or https://'],
  ['javascript:alert(1)', 'http:// or https://'],
  ['data:text/plain,x', 'http:// or https://'],
  ['//example.com/', 'cannot be read'],
  ['example.com', 'cannot be read'],
  ['', 'cannot be read'],
  ['http://', 'cannot be read'],
  ['http://[example.com]/', 'cannot be read'],
  ['http://[localhost]/', 'cannot be read'],
  ['http://[127.0.0.1]/', 'cannot be read'],
  ['http://[fe80::1%25eth0]/', 'cannot be read'],
  ['http://256.1.1.1/', 'cannot be read'],
  ['http://1.2.3.4.5/', 'cannot be read'],
  ['http://exa mple.com/', 'cannot be read'],
  ['http://example.com:99999/', 'cannot be read'],
  ['http://example.com:0/', 'Port 0'],
  ['http://example.com../', 'not a host name'],
  ['http://127.0.0.1../', 'not a host name'],
  ['http://.example.com/', 'not a host name'],
  ['http://a..example.com/', 'not a host name'],
  ['http://*.example.com/', 'not a host name'],
  [`http://${'a'.repeat(64)}.com/`, 'not a host name'],
  [`http://example.com/${'a'.repeat(8192)}`, 'longer than 8192'],
])('%s is refused: %s', (url, reason) => {
  const result = parseTarget(url);
  expect(result).toMatchObject({ ok: false, reason: expect.stringContaining(reason) as string });
});

test('a refusal does not repeat a password', () => {
  expect(JSON.stringify(parseTarget('http://me:secret@example.com/'))).not.toContain('secret');
});

test('reading a target again changes nothing', () => {
  fc.assert(
    fc.property(fc.webUrl({ withQueryParameters: true, withFragments: true }), (url) => {
      const first = parseTarget(url);
      if (!first.ok) return;
      expect(parseTarget(first.target.origin + first.target.path)).toEqual(first);
    }),
  );
});
