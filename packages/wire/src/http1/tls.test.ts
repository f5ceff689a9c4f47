import { createServer, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { afterEach, expect, test, vi } from 'vitest';
import {
  certificate,
  loopbackGuard,
  openOutbound,
  recordingConnect,
  startHttp,
  startHttps,
  tableResolver,
  watch,
} from '../../test/http1/loopback.js';
import { callbackGuard, parseAllowlist } from '@millrace/kit/outbound';

afterEach(() => vi.unstubAllEnvs());

const { resolver } = tableResolver({
  'hooks.example.test': ['127.0.0.1'],
  'other.example.test': ['127.0.0.1'],
});
const guard = loopbackGuard('*.example.test');
const extraCa = [certificate.cert.toString()];

test('a certificate that nobody vouches for is refused', async () => {
  const server = await startHttps((_, response) => response.end());
  const outbound = openOutbound({ guard, resolver });
  const url = `https://hooks.example.test:${server.port}/`;
  expect(await outbound.request({ url, method: 'POST' })).toMatchObject({
    ok: false,
    errorType: 'TLS_FAILURE',
    message: expect.stringContaining('self-signed') as string,
    remoteIp: '127.0.0.1',
  });
});

test('the environment cannot switch the check off', async () => {
  // Node warns about this variable whenever it is read.
  vi.spyOn(process, 'emitWarning').mockReturnValue(undefined);
  vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
  const server = await startHttps((_, response) => response.end());
  const outbound = openOutbound({ guard, resolver });
  const url = `https://hooks.example.test:${server.port}/`;
  expect(await outbound.request({ url, method: 'POST' })).toMatchObject({
    errorType: 'TLS_FAILURE',
  });
  vi.restoreAllMocks();
});

test('an extra authority is trusted, and the server is asked for by its name', async () => {
  const server = await startHttps((request, response) => {
    const { servername } = request.socket as TLSSocket & { servername: string };
    response.end(servername);
  });
  const outbound = openOutbound({ guard, resolver, extraCa });
  const url = `https://hooks.example.test:${server.port}/`;
  const outcome = await outbound.request({ url, method: 'POST' });
  expect(outcome).toMatchObject({ ok: true, status: 200, remoteIp: '127.0.0.1' });
  expect(outcome.ok && Buffer.from(outcome.body).toString()).toBe('hooks.example.test');
  await outbound.request({ url, method: 'POST' });
  expect(server.connections).toBe(1);
});

test('an address is held against the certificate too', async () => {
  const server = await startHttps((_, response) => response.end());
  const outbound = openOutbound({ guard, extraCa });
  const url = `https://127.0.0.1:${server.port}/`;
  expect(await outbound.request({ url, method: 'POST' })).toMatchObject({ ok: true });
});

test('a certificate for another name is refused, every time it is tried', async () => {
  const server = await startHttps((_, response) => response.end());
  const limits = { connectionsPerLane: 1 };
  const outbound = openOutbound({ guard, resolver, extraCa, limits });
  const url = `https://other.example.test:${server.port}/`;
  for (let i = 0; i < 3; i++) {
    expect(await outbound.request({ url, method: 'POST', timeoutMs: 2_000 })).toMatchObject({
      errorType: 'TLS_FAILURE',
      message: expect.stringContaining("does not match certificate's altnames") as string,
    });
  }
});

test('a server that does not speak TLS is a TLS failure', async () => {
  const server = await startHttp((_, response) => response.end());
  const outbound = openOutbound({ guard, resolver, extraCa });
  const url = `https://hooks.example.test:${server.port}/`;
  expect(await outbound.request({ url, method: 'POST' })).toMatchObject({
    errorType: 'TLS_FAILURE',
  });
});

test('a server that hangs up during the handshake is a reset', async () => {
  const server = await watch(createServer((socket) => socket.once('data', () => socket.end())));
  const outbound = openOutbound({ guard, resolver, extraCa });
  const url = `https://hooks.example.test:${server.port}/`;
  expect(await outbound.request({ url, method: 'POST' })).toMatchObject({
    errorType: 'CONNECTION_RESET',
  });
});

test('a handshake that fails is not tried again at the next address', async () => {
  const reset = (socket: Socket) => socket.once('data', () => socket.resetAndDestroy());
  const server = await watch(createServer(reset));
  const { dialled, connect } = recordingConnect(() => '127.0.0.1');
  const outbound = openOutbound({
    guard,
    resolver: () => Promise.resolve(['127.0.0.1', '127.0.0.2']),
    connect,
  });
  const url = `https://hooks.example.test:${server.port}/`;
  expect(await outbound.request({ url, method: 'POST' })).toMatchObject({
    errorType: 'CONNECTION_RESET',
  });
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(dialled).toEqual(['127.0.0.1']);
});

test('a handshake that does not end runs into the connect timeout', async () => {
  const server = await watch(createServer((socket) => socket.resume()));
  const outbound = openOutbound({ guard, resolver, extraCa });
  const url = `https://hooks.example.test:${server.port}/`;
  const outcome = await outbound.request({ url, method: 'POST', connectTimeoutMs: 80 });
  expect(outcome).toMatchObject({
    errorType: 'TIMEOUT',
    message: 'No connection within 80 ms (in the TLS handshake)',
    remoteIp: '127.0.0.1',
  });
  await expect.poll(() => server.open.size).toBe(0);
});

test('a peer at a forbidden address gets no TLS greeting', async () => {
  const server = await startHttps((_, response) => response.end());
  const { sockets, connect } = recordingConnect(() => '127.0.0.1');
  const entry = { scheme: 'https', host: '*.example.test', port: '*' };
  const outbound = openOutbound({
    guard: callbackGuard(parseAllowlist([entry])),
    resolver: () => Promise.resolve(['93.184.216.34']),
    connect,
  });
  const url = `https://hooks.example.test:${server.port}/`;
  expect(await outbound.request({ url, method: 'POST' })).toMatchObject({
    errorType: 'TARGET_BLOCKED',
    remoteIp: '127.0.0.1',
  });
  expect(sockets.map((socket) => socket.bytesWritten)).toEqual([0]);
});
