import { describe, expect, test } from 'vitest';
import {
  loopbackGuard,
  openOutbound,
  recordingConnect,
  startHttp,
  tableResolver,
} from '../../test/http1/loopback.js';
import {
  callbackGuard,
  parseAllowlist,
  webhookGuard,
  type OutboundOutcome,
} from '@millrace/kit/outbound';

/** Every host under every port is on the list, so that only the address can be the objection. */
const anyHost = (...hosts: string[]) =>
  callbackGuard(parseAllowlist(hosts.map((host) => ({ scheme: 'http', host, port: '*' }))));

const isBlocked = (outcome: OutboundOutcome) =>
  !outcome.ok && outcome.errorType === 'TARGET_BLOCKED';

describe('blocked without an allowlist network, and nothing is dialled', () => {
  test.each([
    ['http://2130706433', '127.0.0.1'],
    ['http://0x7f.1', '127.0.0.1'],
    ['http://0177.0.0.1', '127.0.0.1'],
    ['http://127.0.0.1', '127.0.0.1'],
    ['http://127.0.0.1.', '127.0.0.1'],
    ['http://127.1', '127.0.0.1'],
    ['http://[::1]', '::1'],
    ['http://[::ffff:127.0.0.1]', '::ffff:7f00:1'],
    ['http://[64:ff9b::7f00:1]', '64:ff9b::7f00:1'],
    ['http://[2002:7f00:1::]', '2002:7f00:1::'],
    ['http://169.254.169.254', '169.254.169.254'],
    ['http://0.0.0.0', '0.0.0.0'],
    ['http://localhost', 'localhost'],
    ['http://LOCALHOST', 'localhost'],
    ['http://localhost.', 'localhost'],
    ['http://inner.example.test', 'inner.example.test'],
  ])('%s', async (origin, host) => {
    const server = await startHttp((_, response) => response.end());
    const { dialled, connect } = recordingConnect();
    const { resolver } = tableResolver({
      localhost: ['127.0.0.1'],
      'inner.example.test': ['127.0.0.1'],
    });
    const outbound = openOutbound({ guard: anyHost(host), resolver, connect });
    const outcome = await outbound.request({ url: `${origin}:${server.port}/`, method: 'POST' });
    expect(outcome).toMatchObject({ ok: false, errorType: 'TARGET_BLOCKED' });
    expect(JSON.stringify(outcome)).toMatch(/opens|unspecified/);
    expect(dialled).toEqual([]);
    expect(server.connections).toBe(0);
  });

  test.each(['http://[localhost]/', 'http://user@127.0.0.1/', 'http://127.0.0.1@example.test/'])(
    '%s, which cannot even be on a list',
    async (url) => {
      const { dialled, connect } = recordingConnect();
      const { lookups, resolver } = tableResolver({});
      const outbound = openOutbound({ guard: loopbackGuard('*.test'), resolver, connect });
      expect(isBlocked(await outbound.request({ url, method: 'POST' }))).toBe(true);
      expect([...lookups, ...dialled]).toEqual([]);
    },
  );

  test('a URL that is not on the allowlist is not resolved', async () => {
    const { lookups, resolver } = tableResolver({ 'other.test': ['127.0.0.1'] });
    const outbound = openOutbound({ guard: loopbackGuard('hooks.test'), resolver });
    const outcome = await outbound.request({ url: 'http://other.test/', method: 'POST' });
    expect(outcome).toMatchObject({
      errorType: 'TARGET_BLOCKED',
      message: 'http://other.test/ is not on the callback allowlist',
    });
    expect(lookups).toEqual([]);
  });
});

describe('allowed with an allowlist network', () => {
  test.each([
    ['http://2130706433', '127.0.0.1', '127.0.0.0/8'],
    ['http://0x7f.1', '127.0.0.1', '127.0.0.0/8'],
    ['http://0177.0.0.1', '127.0.0.1', '127.0.0.0/8'],
    ['http://127.0.0.1.', '127.0.0.1', '127.0.0.0/8'],
    ['http://LOCALHOST.', 'localhost', '127.0.0.0/8'],
    ['http://[::1]', '::1', '::1/128'],
    ['http://[::ffff:127.0.0.1]', '::ffff:127.0.0.1', '::ffff:127.0.0.0/104'],
    ['http://[64:ff9b::7f00:1]', '64:ff9b::7f00:1', '64:ff9b::/96'],
    ['http://[2002:7f00:1::]', '2002:7f00:1::', '2002::/16'],
    ['http://169.254.169.254', '169.254.169.254', '169.254.169.254/32'],
  ])('%s', async (origin, host, network) => {
    const server = await startHttp((_, response) => response.end('here'));
    // Only the loopback address exists on every machine that runs this test.
    const { dialled, connect } = recordingConnect(() => '127.0.0.1');
    const { resolver } = tableResolver({ localhost: ['127.0.0.1'] });
    const networks = [network, '127.0.0.1/32'];
    const list = parseAllowlist([{ scheme: 'http', host, port: '*', networks }]);
    const outbound = openOutbound({ guard: callbackGuard(list), resolver, connect });
    const outcome = await outbound.request({ url: `${origin}:${server.port}/`, method: 'POST' });
    expect(outcome).toMatchObject({ ok: true, status: 200 });
    expect(dialled).toHaveLength(1);
  });
});

describe('names', () => {
  test('one private address among public ones blocks the target', async () => {
    const { dialled, connect } = recordingConnect();
    const { resolver } = tableResolver({ 'mixed.test': ['93.184.216.34', '10.0.0.1'] });
    const outbound = openOutbound({ guard: anyHost('mixed.test'), resolver, connect });
    const outcome = await outbound.request({ url: 'http://mixed.test/', method: 'POST' });
    expect(outcome).toMatchObject({
      errorType: 'TARGET_BLOCKED',
      message: 'mixed.test: 10.0.0.1 is a private address that no matching allowlist entry opens',
      remoteIp: '10.0.0.1',
    });
    expect(dialled).toEqual([]);
  });

  test('a second DNS answer is checked again', async () => {
    const server = await startHttp((_, response) => response.end());
    const answers = ['127.0.0.1', '169.254.169.254'];
    const { dialled, connect } = recordingConnect();
    const networks = ['127.0.0.1/32'];
    const list = parseAllowlist([{ scheme: 'http', host: 'hooks.test', port: '*', networks }]);
    const outbound = openOutbound({
      guard: callbackGuard(list),
      resolver: () => Promise.resolve([answers.shift()!]),
      connect,
      limits: { connectionAgeMs: 0 },
    });
    const call = () =>
      outbound.request({ url: `http://hooks.test:${server.port}/`, method: 'POST' });
    expect(await call()).toMatchObject({ ok: true, remoteIp: '127.0.0.1' });
    // An age of nothing: the second request still rides on the connection and closes it.
    expect(await call()).toMatchObject({ ok: true, remoteIp: '127.0.0.1' });
    expect(await call()).toMatchObject({ ok: false, errorType: 'TARGET_BLOCKED' });
    expect(dialled).toEqual(['127.0.0.1']);
  });

  test('only checked addresses are dialled', async () => {
    const server = await startHttp((_, response) => response.end());
    const { lookups, resolver } = tableResolver({ 'hooks.test': ['127.0.0.1'] });
    const { dialled, connect } = recordingConnect();
    const outbound = openOutbound({ guard: loopbackGuard('hooks.test'), resolver, connect });
    const url = `http://hooks.test:${server.port}/`;
    expect(await outbound.request({ url, method: 'POST' })).toMatchObject({ ok: true });
    expect(lookups).toEqual(['hooks.test']);
    expect(dialled).toEqual(['127.0.0.1']);
  });

  test('a resolver that returns a name instead of an address is blocked', async () => {
    const { dialled, connect } = recordingConnect();
    const { resolver } = tableResolver({ 'hooks.test': ['localhost'] });
    const outbound = openOutbound({ guard: loopbackGuard('hooks.test'), resolver, connect });
    const outcome = await outbound.request({ url: 'http://hooks.test/', method: 'POST' });
    expect(isBlocked(outcome)).toBe(true);
    expect(dialled).toEqual([]);
  });
});

test('a connection to an unexpected address is closed before a byte is written', async () => {
  const server = await startHttp((_, response) => response.end());
  const { sockets, connect } = recordingConnect(() => '127.0.0.1');
  const outbound = openOutbound({ guard: anyHost('93.184.216.34'), connect });
  const url = `http://93.184.216.34:${server.port}/`;
  expect(await outbound.request({ url, method: 'POST', body: 'secret' })).toMatchObject({
    errorType: 'TARGET_BLOCKED',
    message: expect.stringContaining('127.0.0.1 is a loopback address') as string,
    remoteIp: '127.0.0.1',
  });
  expect(sockets.map((socket) => [socket.destroyed, socket.bytesWritten])).toEqual([[true, 0]]);
});

test.each([302, 307])(
  'a %d to the metadata address is handed back, not followed',
  async (status) => {
    const server = await startHttp((_, response) =>
      response.writeHead(status, { location: 'http://169.254.169.254/latest/meta-data/' }).end(),
    );
    const { dialled, connect } = recordingConnect();
    const outbound = openOutbound({ guard: loopbackGuard(), connect });
    const url = `http://127.0.0.1:${server.port}/`;
    expect(await outbound.request({ url, method: 'POST' })).toMatchObject({ ok: true, status });
    expect(dialled).toEqual(['127.0.0.1']);
  },
);

describe('webhooks', () => {
  test('loopback is allowed', async () => {
    const server = await startHttp((_, response) => response.end());
    const outbound = openOutbound({ guard: webhookGuard });
    const url = `http://127.0.0.1:${server.port}/`;
    expect(await outbound.request({ url, method: 'POST' })).toMatchObject({ ok: true });
  });

  test.each([
    'http://169.254.169.254/',
    'http://2852039166/',
    'http://[::ffff:169.254.169.254]/',
    'http://[fe80::1]/',
    'http://[fd00:ec2::254]/',
    'http://metadata.test/',
    'ftp://127.0.0.1/',
  ])('%s is refused', async (url) => {
    const { dialled, connect } = recordingConnect();
    const { resolver } = tableResolver({ 'metadata.test': ['127.0.0.1', '169.254.169.254'] });
    const outbound = openOutbound({ guard: webhookGuard, resolver, connect });
    expect(isBlocked(await outbound.request({ url, method: 'POST' }))).toBe(true);
    expect(dialled).toEqual([]);
  });
});
