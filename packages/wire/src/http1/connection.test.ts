import { createServer, type Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import {
  certificate,
  loopbackGuard,
  openOutbound,
  recordingConnect,
  startHttp,
  startHttps,
  watch,
} from '../../test/http1/loopback.js';
import type { OutboundOutcome } from '@millrace/kit/outbound';

const text = (outcome: OutboundOutcome) =>
  outcome.ok ? Buffer.from(outcome.body).toString() : outcome.message;

/** A raw TCP server: `answer` is called after each read with the number of reads. */
async function startRaw(answer: (socket: Socket, reads: number) => void) {
  let reads = 0;
  const server = await watch(
    createServer((socket) => socket.on('data', () => answer(socket, ++reads))),
  );
  return { server, reads: () => reads, url: `http://127.0.0.1:${server.port}/` };
}

const empty = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';
const one = { connectionsPerPool: 1 };

describe('a reused connection', () => {
  test('that the peer has closed is replaced', async () => {
    const { url, server, reads } = await startRaw((socket) => socket.end(empty));
    const outbound = openOutbound({ guard: loopbackGuard(), limits: one });
    for (let i = 0; i < 5; i++) {
      expect(await outbound.request({ url, method: 'POST', body: 'x' })).toMatchObject({
        ok: true,
      });
      await expect.poll(() => server.open.size).toBe(0);
    }
    expect(reads()).toBe(5);
    expect(server.connections).toBe(5);
  });

  test('that breaks after the request was sent does not retry it', async () => {
    const { url, reads } = await startRaw((socket, count) =>
      count === 2 ? socket.destroy() : socket.write(empty),
    );
    const outbound = openOutbound({ guard: loopbackGuard(), limits: one });
    const call = () => outbound.request({ url, method: 'POST', body: 'x' });
    expect(await call()).toMatchObject({ ok: true });
    expect(await call()).toMatchObject({ errorType: 'CONNECTION_RESET', remoteIp: '127.0.0.1' });
    expect(reads()).toBe(2);
    expect(await call()).toMatchObject({ ok: true });
    expect(reads()).toBe(3);
  });

  test.each([
    ['at once', (socket: Socket) => void socket.write(`${empty}${empty}`)],
    [
      'later',
      (socket: Socket) => void socket.write(empty, () => setTimeout(() => socket.write(empty), 20)),
    ],
  ])('is not used when its peer says more than it was asked, %s', async (_, answer) => {
    const { url, server } = await startRaw(answer);
    const outbound = openOutbound({ guard: loopbackGuard(), limits: one });
    expect(await outbound.request({ url, method: 'POST' })).toMatchObject({ ok: true });
    await expect.poll(() => server.open.size).toBe(0);
    expect(await outbound.request({ url, method: 'POST' })).toMatchObject({ ok: true });
    expect(server.connections).toBe(2);
  });

  test('is closed when the response arrives before the request is fully sent', async () => {
    const server = await watch(
      createServer((socket) => {
        socket.write('HTTP/1.1 413 No\r\ncontent-length: 0\r\n\r\n');
        socket.pause();
      }),
    );
    const { sockets, connect } = recordingConnect();
    const outbound = openOutbound({ guard: loopbackGuard(), connect, limits: one });
    const url = `http://127.0.0.1:${server.port}/`;
    const body = Buffer.alloc(16 * 1024 * 1024);
    expect(await outbound.request({ url, method: 'POST', body })).toMatchObject({ status: 413 });
    expect(sockets.map((socket) => socket.destroyed)).toEqual([true]);
  });

  test.each([
    ['HEAD' as const, undefined],
    ['GET' as const, 'a body that many do not read'],
  ])('is not used after %s with the body %j', async (method, body) => {
    const server = await startHttp((request, response) => response.end(request.headers.connection));
    const outbound = openOutbound({ guard: loopbackGuard(), limits: one });
    const url = `http://127.0.0.1:${server.port}/`;
    const sendRequest = body === undefined ? { url, method } : { url, method, body };
    expect(await outbound.request(sendRequest)).toMatchObject({ ok: true, status: 200 });
    expect(text(await outbound.request({ url, method: 'GET' }))).toBe('keep-alive');
    expect(server.connections).toBe(2);
  });
});

describe('an idle connection', () => {
  test('closes at once when the Keep-Alive timeout of its peer is short', async () => {
    const answer = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\nkeep-alive: timeout=2\r\n\r\n';
    const { url, server } = await startRaw((socket) => void socket.write(answer));
    const outbound = openOutbound({ guard: loopbackGuard() });
    expect(await outbound.request({ url, method: 'POST' })).toMatchObject({ ok: true });
    await expect.poll(() => server.open.size).toBe(0);
  });

  test('closes by the Keep-Alive timeout of the last response', async () => {
    const { url, server } = await startRaw((socket, reads) => {
      const seconds = reads === 1 ? 500 : 3;
      const header = `keep-alive: timeout=${seconds}`;
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 0\r\n${header}\r\n\r\n`);
    });
    const outbound = openOutbound({ guard: loopbackGuard() });
    await outbound.request({ url, method: 'POST' });
    await outbound.request({ url, method: 'POST' });
    expect(server.connections).toBe(1);
    await expect.poll(() => server.open.size).toBe(0);
  });
});

test.each([
  ['in its head', 'HTTP/1.1 200 OK\r\nx-half'],
  ['in its body', 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf'],
  ['in a chunk', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nhalf'],
  ['in hints', 'HTTP/1.1 103 Early\r\n\r\n'.repeat(16)],
])('what was broken off %s is not taken for a part of the next answer', async (_, half) => {
  const whole = 'HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndone';
  const { url } = await startRaw((socket, reads) => void socket.write(reads === 1 ? half : whole));
  const outbound = openOutbound({ guard: loopbackGuard(), limits: one });
  const first = await outbound.request({ url, method: 'POST', timeoutMs: 300 });
  expect(first).toMatchObject({ errorType: 'TIMEOUT' });
  expect(text(await outbound.request({ url, method: 'POST' }))).toBe('done');
});

test('a close-delimited response is complete, even after a reset', async () => {
  const { url } = await startRaw((socket, reads) => {
    socket.write('HTTP/1.0 200 OK\r\n\r\ndone');
    setTimeout(() => (reads === 1 ? socket.end() : socket.resetAndDestroy()), 30);
  });
  const outbound = openOutbound({ guard: loopbackGuard() });
  for (let i = 0; i < 2; i++) {
    const outcome = await outbound.request({ url, method: 'POST' });
    expect(outcome).toMatchObject({ ok: true, status: 200, truncated: false });
    expect(text(outcome)).toBe('done');
  }
});

test.each(['http', 'https'] as const)(
  'bodies of every size pass over %s both ways',
  async (scheme) => {
    const start = scheme === 'http' ? startHttp : startHttps;
    const server = await start((request, response) => {
      if (request.headers['x-length'] === '1') {
        response.setHeader('content-length', request.headers['content-length']!);
      }
      request.pipe(response);
    });
    const outbound = openOutbound({
      guard: loopbackGuard(),
      extraCa: [certificate.cert.toString()],
      limits: one,
    });
    const url = `${scheme}://127.0.0.1:${server.port}/`;
    for (const size of [0, 1, 300, 16_384, 16_385, 70_000, 400_000]) {
      for (const isLengthKnown of ['0', '1']) {
        const body = Buffer.alloc(size, 'Grüße aus dem Mühlgraben ');
        const outcome = await outbound.request({
          url,
          method: 'POST',
          headers: { 'x-length': isLengthKnown },
          body: size === 300 ? body.toString() : body,
          maxResponseBytes: 1_000_000,
        });
        expect(outcome).toMatchObject({ ok: true, truncated: false });
        expect(outcome.ok && Buffer.compare(outcome.body, body)).toBe(0);
      }
    }
    expect(server.connections).toBe(1);
  },
);

test('responses read at the same time are not mixed up', async () => {
  const server = await startHttp((request, response) => {
    response.write(`${request.headers['x-n']} `);
    setImmediate(() => response.end('x'.repeat(Number(request.headers['x-n']))));
  });
  const outbound = openOutbound({ guard: loopbackGuard() });
  const url = `http://127.0.0.1:${server.port}/`;
  const outcomes = await Promise.all(
    Array.from({ length: 200 }, (_, n) =>
      outbound.request({ url, method: 'POST', headers: { 'x-n': String(n) } }),
    ),
  );
  outcomes.forEach((outcome, n) => expect(text(outcome)).toBe(`${n} ${'x'.repeat(n)}`));
});
