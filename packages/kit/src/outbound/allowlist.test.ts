import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { UsageError } from '../base/errors.js';
import { parseAllowlist, readAllowlist } from './allowlist.js';

const allows = (entry: object, url: string) => parseAllowlist([entry]).match(url).allowed;

test('an empty list denies everything and says so', () => {
  expect(parseAllowlist([]).match('https://example.com/')).toEqual({
    allowed: false,
    reason: 'The callback allowlist is empty, so no URL may be called',
  });
});

describe('hosts', () => {
  test.each([
    ['api.example.com', 'https://api.example.com/', true],
    ['api.example.com', 'https://API.Example.COM/', true],
    ['api.example.com', 'https://api.example.com./', true],
    ['API.Example.com.', 'https://api.example.com/', true],
    ['api.example.com', 'https://api.example.com.evil.test/', false],
    ['api.example.com', 'https://evil.test/?api.example.com', false],
    ['api.example.com', 'https://api.example.com@evil.test/', false],
    ['api.example.com', 'https://evil.test#@api.example.com/', false],
    ['api.example.com', 'https://evil.test\\@api.example.com/', false],
    ['*.example.com', 'https://a.example.com/', true],
    ['*.example.com', 'https://a.b.example.com/', true],
    ['*.example.com', 'https://A.EXAMPLE.com./', true],
    ['*.example.com', 'https://example.com/', false],
    ['*.example.com', 'https://.example.com/', false],
    ['*.example.com', 'https://badexample.com/', false],
    ['*.example.com', 'https://example.com.evil.test/', false],
    ['bücher.example', 'https://xn--bcher-kva.example/', true],
    ['xn--bcher-kva.example', 'https://BÜCHER.example/', true],
    ['127.0.0.1', 'https://2130706433/', true],
    ['127.0.0.1', 'https://0x7f.1/', true],
    ['127.0.0.1', 'https://127.0.0.2/', false],
    ['127.0.0.1', 'https://[::ffff:127.0.0.1]/', false],
    ['0x7f.1', 'https://127.0.0.1/', true],
    ['::1', 'https://[::1]/', true],
    ['[::1]', 'https://[0:0::1]/', true],
    ['*.1', 'https://127.0.0.1/', false],
  ])('%s against %s: %s', (host, url, expected) => {
    const networks = ['0.0.0.0/0', '::/0'];
    const { allowlist } = readAllowlist([{ scheme: 'https', host, networks }]);
    expect(allowlist?.match(url).allowed ?? false).toBe(expected);
  });

  test('case and a trailing dot never change the answer', () => {
    const hosts = fc.constantFrom('example.com', 'a.example.com', 'x.y.example.com', 'evil.test');
    const list = parseAllowlist([{ scheme: 'http', host: '*.example.com' }]);
    fc.assert(
      fc.property(hosts, fc.infiniteStream(fc.boolean()), fc.boolean(), (host, coins, dot) => {
        const flip = (letter: string) => (coins.next().value ? letter.toUpperCase() : letter);
        const spelled = host.split('').map(flip).join('') + (dot ? '.' : '');
        expect(list.match(`http://${spelled}/`).allowed).toBe(
          list.match(`http://${host}/`).allowed,
        );
      }),
    );
  });
});

describe('schemes and ports', () => {
  test.each([
    [{ scheme: 'http' }, 'http://h.test/', true],
    [{ scheme: 'http' }, 'https://h.test/', false],
    [{ scheme: 'http' }, 'http://h.test:8080/', false],
    [{ scheme: 'https' }, 'https://h.test:443/', true],
    [{ scheme: 'http', port: 8080 }, 'http://h.test:8080/', true],
    [{ scheme: 'http', port: 8080 }, 'http://h.test/', false],
    [{ scheme: 'http', port: 80 }, 'http://h.test/', true],
    [{ scheme: 'http', port: '*' }, 'http://h.test:12345/', true],
    [{ scheme: 'http', port: '*' }, 'http://h.test/', true],
  ])('%j against %s: %s', (entry, url, expected) => {
    expect(allows({ host: 'h.test', ...entry }, url)).toBe(expected);
  });
});

describe('gRPC', () => {
  const loopback = { host: '127.0.0.1', networks: ['127.0.0.0/8'] };
  test.each([
    [{ scheme: 'grpc', port: 50051 }, 'grpc://h.test:50051', true],
    [{ scheme: 'grpc', port: 50051 }, 'grpc://H.test.:50051/', true],
    [{ scheme: 'grpc', port: 50051 }, 'grpcs://h.test:50051', false],
    [{ scheme: 'grpc', port: 50051 }, 'http://h.test:50051', false],
    [{ scheme: 'http', port: 50051 }, 'grpc://h.test:50051', false],
    [{ scheme: 'grpcs', port: 50051 }, 'grpcs://h.test:50051', true],
    [{ scheme: 'grpcs' }, 'grpcs://h.test', true],
    [{ scheme: 'grpc' }, 'grpc://h.test:80', true],
    [{ scheme: 'grpc', port: '*' }, 'grpc://h.test:1', true],
    [{ scheme: 'grpc', port: '*' }, 'grpc://h.test:1/path', false],
    [{ scheme: 'grpc', port: '*' }, 'grpc://h.test:1?q=1', false],
    [{ scheme: 'grpc', port: '*' }, 'grpc://h.test:1#x', false],
    [{ scheme: 'grpc', port: '*' }, 'grpc://user@h.test:1', false],
    [{ scheme: 'grpc', port: '*' }, 'grpc://h.test:0', false],
    [{ scheme: 'grpc', port: '*' }, 'grpc:h.test:1', false],
    [{ scheme: 'grpc', port: 1, ...loopback }, 'grpc://127.0.0.1:1', true],
    [{ scheme: 'grpc', port: 1, ...loopback }, 'grpc://0x7f.1:1', true],
    [{ scheme: 'grpc', port: 1, ...loopback, networks: [] }, 'grpc://2130706433:1', false],
  ])('%j against %s: %s', (entry, url, expected) => {
    expect(allows({ host: 'h.test', ...entry }, url)).toBe(expected);
  });
});

describe('path prefixes', () => {
  test.each([
    ['/', '/anything/at%2Fall/..;/', true],
    ['/hooks', '/hooks', true],
    ['/hooks', '/hooks/', true],
    ['/hooks', '/hooks/a/b?c=/../', true],
    ['/hooks', '/hooksmith', false],
    ['/hooks', '/Hooks', false],
    ['/hooks', '//hooks', false],
    ['/hooks', '/other', false],
    ['/hooks/', '/hooks/a', true],
    ['/hooks/', '/hooks', false],
    ['/hooks', '/hooks/../admin', false],
    ['/hooks', '/hooks/%2e%2e/admin', false],
    ['/hooks', '/hooks/.%2E/admin', false],
    ['/hooks', '/hooks\\..\\admin', false],
    ['/hooks', '/hooks/a/../b', true],
    ['/hooks', '/hooks/..%2fadmin', false],
    ['/hooks', '/hooks/..%5cadmin', false],
    ['/hooks', '/hooks/a%2Fb', false],
    ['/hooks', '/hooks/%252e%252e/admin', false],
    ['/hooks', '/hooks/%25252e%25252e/admin', false],
    ['/hooks', '/hooks/..;/admin', false],
    ['/hooks', '/hooks/..;x=y/admin', false],
    ['/hooks', '/hooks/%2e%2e;/admin', false],
    ['/hooks', '/hooks/a%00', false],
    ['/hooks', '/hooks/a;v=1', true],
    ['/hooks', '/hooks/a%20b', true],
    ['/hooks', '/hooks/100%25', true],
    ['/hooks', '/hooks/1.2..3', true],
    ['/hooks', '/hooks//a', true],
    ['/a b', '/a%20b/c', false],
    ['/ä', '/%C3%A4/c', true],
  ])('%s against %s: %s', (prefix, path, expected) => {
    const entry = { scheme: 'http', host: 'h.test', path_prefix: prefix };
    const { allowlist } = readAllowlist([entry]);
    expect(allowlist?.match(`http://h.test${path}`).allowed ?? false).toBe(expected);
  });
});

describe('openings', () => {
  const denyReason = (entries: object[], url: string, address: string) => {
    const match = parseAllowlist(entries).match(url);
    if (!match.allowed) throw new Error(match.reason);
    return match.policy.denyReason(address);
  };

  test('an entry opens its networks and no others', () => {
    const entry = { scheme: 'http', host: 'h.test', networks: ['10.0.0.0/8'] };
    expect(denyReason([entry], 'http://h.test/', '10.1.1.1')).toBeUndefined();
    expect(denyReason([entry], 'http://h.test/', '127.0.0.1')).toContain('loopback');
  });

  test.each([
    'http://127.0.0.1/',
    'http://2130706433/',
    'http://[::1]/',
    'http://169.254.169.254/',
  ])('%s is denied at once when its entry opens nothing', (url) => {
    const hosts = ['127.0.0.1', '::1', '169.254.169.254'];
    const list = parseAllowlist(hosts.map((host) => ({ scheme: 'http', host })));
    expect(list.match(url)).toMatchObject({
      allowed: false,
      reason: expect.stringContaining('no matching allowlist entry opens') as string,
    });
  });

  test('entries that match together open together, whatever their order', () => {
    const entries = [
      { scheme: 'http', host: '*.test', networks: ['127.0.0.0/8'] },
      { scheme: 'http', host: 'h.test', networks: ['10.0.0.0/8'] },
    ];
    for (const list of [entries, entries.toReversed()]) {
      expect(denyReason(list, 'http://h.test/', '10.1.1.1')).toBeUndefined();
      expect(denyReason(list, 'http://h.test/', '127.0.0.1')).toBeUndefined();
      expect(denyReason(list, 'http://other.test/', '10.1.1.1')).toContain('private');
    }
  });
});

describe('mistakes in the config file', () => {
  test.each([
    ['nothing', '', 'must be a list'],
    [[7], '/0', 'must be an entry'],
    [[{ host: 'h.test' }], '/0/scheme', 'must be "http", "https"'],
    [[{ scheme: 'ftp', host: 'h.test' }], '/0/scheme', 'must be "http", "https"'],
    [[{ scheme: 'http' }], '/0/host', 'must be a host'],
    [[{ scheme: 'http', host: '*' }], '/0/host', 'must be a host'],
    [[{ scheme: 'http', host: 'a.*.com' }], '/0/host', 'must be a host'],
    [[{ scheme: 'http', host: '*.*.com' }], '/0/host', 'must be a host'],
    [[{ scheme: 'http', host: '*.127.0.0.1' }], '/0/host', 'must be a host'],
    [[{ scheme: 'http', host: 'http://h.test' }], '/0/host', 'without scheme, port or path'],
    [[{ scheme: 'http', host: 'h.test:80' }], '/0/host', 'without scheme, port or path'],
    [[{ scheme: 'http', host: 'h.test/x' }], '/0/host', 'without scheme, port or path'],
    [[{ scheme: 'http', host: 'me@h.test' }], '/0/host', 'without scheme, port or path'],
    [[{ scheme: 'http', host: '' }], '/0/host', 'must be a host'],
    [[{ scheme: 'http', host: '[h.test]' }], '/0/host', 'must be a host'],
    [[{ scheme: 'http', host: 'h.test', port: 0 }], '/0/port', 'from 1 to 65535'],
    [[{ scheme: 'http', host: 'h.test', port: '80' }], '/0/port', 'from 1 to 65535'],
    [[{ scheme: 'http', host: 'h.test', port: 80.5 }], '/0/port', 'from 1 to 65535'],
    [[{ scheme: 'http', host: 'h.test', path_prefix: 'a' }], '/0/path_prefix', 'plain path'],
    [[{ scheme: 'http', host: 'h.test', path_prefix: '/..' }], '/0/path_prefix', 'plain path'],
    [[{ scheme: 'http', host: 'h.test', path_prefix: '/a/%2e%2e/b' }], '/0/path_prefix', 'plain'],
    [[{ scheme: 'http', host: 'h.test', path_prefix: '/a?b' }], '/0/path_prefix', 'plain path'],
    [[{ scheme: 'grpc', host: 'h.test', path_prefix: '/' }], '/0/path_prefix', 'must be absent'],
    [[{ scheme: 'http', host: 'h.test', networks: '10.0.0.0/8' }], '/0/networks', 'must be a list'],
    [[{ scheme: 'http', host: 'h.test', networks: ['x'] }], '/0/networks/0', 'is not a network'],
    [[{ scheme: 'http', host: 'h.test', networks: [10] }], '/0/networks/0', 'is not a network'],
    [[{ scheme: 'http', host: 'h.test', path: '/' }], '/0/path', 'is not known; use scheme, host'],
  ])('%j is refused at "%s": %s', (input, pointer, message) => {
    const { allowlist, errors } = readAllowlist(input);
    expect(allowlist).toBeUndefined();
    expect(errors).toContainEqual({ pointer, message: expect.stringContaining(message) as string });
  });

  test('all mistakes are reported at once', () => {
    const input = [
      { scheme: 'http', host: 'ok.test' },
      { scheme: 'x', host: '', port: -1 },
    ];
    expect(readAllowlist(input).errors.map((error) => error.pointer)).toEqual([
      '/1/scheme',
      '/1/host',
      '/1/port',
    ]);
    expect(() => parseAllowlist(input)).toThrow(UsageError);
    expect(() => parseAllowlist(input)).toThrow('/1/port: must be a whole number');
  });
});
