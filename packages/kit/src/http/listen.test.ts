import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { sampleApp, startSample } from '../../test/http/sample-server.js';
import { UsageError } from '../base/errors.js';
import { announce, listen, urlOf } from './listen.js';

test('port 0 is any free port, and the url has the real one', async () => {
  const listener = await listen(sampleApp(), '127.0.0.1:0');
  expect(listener.url).toMatch(/^http:\/\/127\.0\.0\.1:[1-9]\d*$/);
  expect((await fetch(`${listener.url}/healthz`)).status).toBe(200);
  await listener.close();
  await expect(fetch(`${listener.url}/healthz`)).rejects.toThrow();
});

test('a name is listened at under that name', async () => {
  const listener = await listen(sampleApp(), 'localhost:0');
  expect(listener.url).toMatch(/^http:\/\/localhost:\d+$/);
  expect((await fetch(`${listener.url}/healthz`)).status).toBe(200);
  await listener.close();
});

const hasIpv6 = await new Promise<boolean>((resolve) => {
  const probe = createServer().on('error', () => resolve(false));
  probe.listen(0, '::1', () => probe.close(() => resolve(true)));
});

test.skipIf(!hasIpv6)('IPv6 stands in brackets', async () => {
  const listener = await listen(sampleApp(), '[::1]:0');
  expect(listener.url).toMatch(/^http:\/\/\[::1\]:\d+$/);
  expect((await fetch(`${listener.url}/healthz`)).status).toBe(200);
  await listener.close();
});

test('a port in use is reported in one line with a hint', async () => {
  const first = await startSample();
  const address = first.url.slice('http://'.length);
  const second = listen(sampleApp(), address, { flag: '--metrics-listen' });
  await expect(second).rejects.toThrow(
    new UsageError(
      `${address} is already in use: stop the other server or pass --metrics-listen host:port`,
    ),
  );
  await first.close();
});

test.each([
  ['127.0.0.1', 'the port is missing'],
  ['::1:80', 'brackets'],
  ['127.0.0.1:99999', 'from 0 to 65535'],
  ['http://127.0.0.1:80', 'address such as'],
])('%s is not an address', async (address, hint) => {
  const attempt = listen(sampleApp(), address);
  await expect(attempt).rejects.toThrow(UsageError);
  await expect(listen(sampleApp(), address)).rejects.toThrow(/^--listen must be/);
  await expect(listen(sampleApp(), address)).rejects.toThrow(hint);
});

test('an address of another machine is reported', async () => {
  await expect(listen(sampleApp(), '192.0.2.1:0')).rejects.toThrow(
    '192.0.2.1:0 is not an address of this machine: pass --listen with one that is',
  );
});

test('an unknown host is reported', async () => {
  await expect(listen(sampleApp(), 'no-such-host.invalid:0')).rejects.toThrow(UsageError);
});

test('a listener is announced by one line of JSON', () => {
  let out = '';
  announce(
    { component: 'queue', listener: 'http', url: urlOf({ host: '::1', port: 80 }) },
    (line) => {
      out += line;
    },
  );
  expect(out).toBe(
    '{"event":"listening","component":"queue","listener":"http","url":"http://[::1]:80"}\n',
  );
});
