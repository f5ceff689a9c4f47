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

test('a self-signed certificate is rejected', async () => {
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

test('the environment cannot disable certificate checks', async () => {
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

test('an extra CA is trusted, and SNI carries the host name', async () => {
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

test('an IP address is checked against the certificate', async () => {
  const server = await startHttps((_, response) => response.end());
  const outbound = openOutbound({ guard, extraCa });
  const url = `https://127.0.0.1:${server.port}/`;
  expect(await outbound.request({ url, method: 'POST' })).toMatchObject({ ok: true });
});

test('a certificate for another name is rejected every time', async () => {
  const server = await startHttps((_, response) => response.end());
  const limits = { connectionsPerPool: 1 };
  const outbound = openOutbound({ guard, resolver, extraCa, limits });
  const url = `https://other.example.test:${server.port}/`;
  for (let i = 0; i < 3; i++) {
    expect(await outbound.request({ url, method: 'POST', timeoutMs: 2_000 })).toMatchObject({
      errorType: 'TLS_FAILURE',
      message: expect.stringContaining("does not match certificate's altnames") as string,
    });
  }
});

test('a server without TLS is TLS_FAILURE', async () => {
  const server = await startHttp((_, response) => response.end());
  const outbound = openOutbound({ guard, resolver, extraCa });
  const url = `https://hooks.example.test:${server.port}/`;
  expect(await outbound.request({ url, method: 'POST' })).toMatchObject({
    errorType: 'TLS_FAILURE',
  });
});

test('a server that closes during the handshake is CONNECTION_RESET', async () => {
  const server = await watch(createServer((socket) => socket.once('data', () => socket.end())));
  const outbound = openOutbound({ guard, resolver, extraCa });
  const url = `https://hooks.example.test:${server.port}/`;
  expect(await outbound.request({ url, method: 'POST' })).toMatchObject({
    errorType: 'CONNECTION_RESET',
  });
});

test('a failed handshake is not retried at the next address', async () => {
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

test('the connect timeout covers the handshake', async () => {
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

test('a peer at a blocked address gets no ClientHello', async () => {
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
