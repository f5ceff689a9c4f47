import { createServer, Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import {
  blackholePort,
  loopbackGuard,
  openOutbound,
  recordingConnect,
  startHttp,
  tableResolver,
  unusedPort,
  watch,
} from '../../test/http1/loopback.js';
import { systemClock } from '@millrace/kit/clock';
import { RequestAbort } from '@millrace/kit/outbound';

const never = () => new Promise<never>(() => undefined);

describe('one deadline from the lookup to the last byte', () => {
  test('covers the DNS lookup', async () => {
    const outbound = openOutbound({ guard: loopbackGuard('slow.test'), resolver: never });
    const url = 'http://slow.test/';
    const outcome = await outbound.request({ url, method: 'POST', timeoutMs: 60 });
    expect(outcome).toMatchObject({
      ok: false,
      errorType: 'TIMEOUT',
      message: 'No complete response within 60 ms (resolving the host name)',
    });
    expect(outcome.durationMs).toBeLessThan(5_000);
  });

  test('covers connecting', async () => {
    const url = `http://127.0.0.1:${await blackholePort()}/`;
    const outbound = openOutbound({ guard: loopbackGuard() });
    const whole = await outbound.request({ url, method: 'POST', timeoutMs: 80 });
    expect(whole).toMatchObject({
      errorType: 'TIMEOUT',
      message: 'No complete response within 80 ms (connecting)',
      remoteIp: '127.0.0.1',
    });
    const connecting = await outbound.request({ url, method: 'POST', connectTimeoutMs: 80 });
    expect(connecting).toMatchObject({
      errorType: 'TIMEOUT',
      message: 'No connection within 80 ms (connecting)',
      remoteIp: '127.0.0.1',
    });
  });

  test('covers waiting for the headers', async () => {
    const server = await startHttp(() => undefined);
    const outbound = openOutbound({ guard: loopbackGuard() });
    const url = `http://127.0.0.1:${server.port}/`;
    const outcome = await outbound.request({ url, method: 'POST', timeoutMs: 80 });
    expect(outcome).toMatchObject({
      errorType: 'TIMEOUT',
      message: 'No complete response within 80 ms (waiting for the response)',
      remoteIp: '127.0.0.1',
    });
    await expect.poll(() => server.open.size).toBe(0);
  });

  test('covers a slow body', async () => {
    const server = await startHttp((_, response) => {
      response.writeHead(200);
      const drip = setInterval(() => response.write('x'), 10);
      response.on('close', () => clearInterval(drip));
    });
    const outbound = openOutbound({ guard: loopbackGuard() });
    const url = `http://127.0.0.1:${server.port}/`;
    const outcome = await outbound.request({ url, method: 'POST', timeoutMs: 2_000 });
    expect(outcome).toMatchObject({
      errorType: 'TIMEOUT',
      message: 'No complete response within 2000 ms (reading the response)',
    });
    expect(outcome.durationMs).toBeGreaterThanOrEqual(1_900);
    await expect.poll(() => server.open.size).toBe(0);
  });

  test('covers a request body that the peer does not read', async () => {
    const server = await watch(createServer((socket) => socket.pause()));
    const { sockets, connect } = recordingConnect();
    const outbound = openOutbound({ guard: loopbackGuard(), connect });
    const url = `http://127.0.0.1:${server.port}/`;
    const body = Buffer.alloc(8 * 1024 * 1024);
    const outcome = await outbound.request({ url, method: 'POST', body, timeoutMs: 150 });
    expect(outcome).toMatchObject({ errorType: 'TIMEOUT' });
    expect(sockets.map((socket) => socket.destroyed)).toEqual([true]);
  });
});

describe('error types', () => {
  test('a closed port is CONNECTION_REFUSED', async () => {
    const outbound = openOutbound({ guard: loopbackGuard() });
    const url = `http://127.0.0.1:${await unusedPort()}/`;
    expect(await outbound.request({ url, method: 'POST' })).toMatchObject({
      errorType: 'CONNECTION_REFUSED',
      message: expect.stringContaining('ECONNREFUSED') as string,
      remoteIp: '127.0.0.1',
    });
  });

  test('an unknown name is DNS_FAILURE', async () => {
    const { resolver } = tableResolver({ 'empty.test': [] });
    const outbound = openOutbound({ guard: loopbackGuard('*.test'), resolver });
    expect(await outbound.request({ url: 'http://gone.test/', method: 'POST' })).toMatchObject({
      errorType: 'DNS_FAILURE',
      message: 'getaddrinfo ENOTFOUND gone.test',
    });
    expect(await outbound.request({ url: 'http://empty.test/', method: 'POST' })).toMatchObject({
      errorType: 'DNS_FAILURE',
      message: 'empty.test has no address',
    });
  });

  test.each<[string, string, (socket: Socket) => void, string]>([
    ['a reset before the headers', '', (socket) => socket.resetAndDestroy(), 'CONNECTION_RESET'],
    ['a close before the headers', '', (socket) => socket.end(), 'CONNECTION_RESET'],
    [
      'a reset in the middle of the body',
      'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf',
      (socket) => socket.resetAndDestroy(),
      'CONNECTION_RESET',
    ],
    [
      'a close in the middle of the body',
      'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf',
      (socket) => socket.end(),
      'CONNECTION_RESET',
    ],
    [
      'a close in the middle of a body that ends the connection',
      'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 100\r\n\r\nhalf',
      (socket) => socket.end(),
      'CONNECTION_RESET',
    ],
    [
      'a close in the middle of a chunk',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n64\r\nhalf',
      (socket) => socket.end(),
      'CONNECTION_RESET',
    ],
    [
      'something that is not HTTP',
      'SSH-2.0-OpenSSH_9.6\r\n',
      (socket) => socket.end(),
      'NETWORK_ERROR',
    ],
    [
      'an unexpected 101',
      'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
      () => undefined,
      'NETWORK_ERROR',
    ],
    [
      'headers without end',
      `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(100_000)}`,
      () => undefined,
      'NETWORK_ERROR',
    ],
  ])('%s', async (_, answer, then, errorType) => {
    const server = await watch(
      createServer((socket) => {
        socket.once('data', () => {
          socket.write(answer);
          // The kernel may drop what it has not sent yet when it resets.
          setTimeout(() => then(socket), 30);
        });
      }),
    );
    const outbound = openOutbound({ guard: loopbackGuard() });
    const url = `http://127.0.0.1:${server.port}/`;
    const outcome = await outbound.request({ url, method: 'POST', timeoutMs: 5_000 });
    expect(outcome).toMatchObject({ ok: false, errorType, remoteIp: '127.0.0.1' });
  });

  test('a failed request does not affect the next one', async () => {
    let calls = 0;
    const server = await startHttp((request, response) =>
      ++calls % 2 === 1 ? request.socket.resetAndDestroy() : response.end(),
    );
    const outbound = openOutbound({ guard: loopbackGuard(), limits: { connectionsPerPool: 1 } });
    const url = `http://127.0.0.1:${server.port}/`;
    const seen = [];
    for (let i = 0; i < 6; i++) seen.push((await outbound.request({ url, method: 'POST' })).ok);
    expect(seen).toEqual([false, true, false, true, false, true]);
  });
});

describe('several addresses', () => {
  test('a refused address is followed by the next immediately', async () => {
    const server = await startHttp((_, response) => response.end());
    const { resolver } = tableResolver({ 'two.test': ['127.0.0.1', '127.0.0.9'] });
    const dead = await unusedPort();
    const outbound = openOutbound({
      guard: loopbackGuard('two.test'),
      resolver,
      // Without the moment that is waited before a silent address gets company.
      clock: { ...systemClock, after: (ms, run) => systemClock.after(ms === 250 ? 9e9 : ms, run) },
      connect: (address, port) =>
        new Socket().connect(address === '127.0.0.1' ? dead : port, '127.0.0.1'),
    });
    const url = `http://two.test:${server.port}/`;
    expect(await outbound.request({ url, method: 'POST' })).toMatchObject({ ok: true });
  });

  test('the next address is tried in parallel after 250 ms', async () => {
    const server = await startHttp((_, response) => response.end());
    const { resolver } = tableResolver({ 'two.test': ['127.0.0.9', '127.0.0.1', '127.0.0.8'] });
    const { dialled, connect } = recordingConnect();
    const silent: Socket[] = [];
    const outbound = openOutbound({
      guard: loopbackGuard('two.test'),
      resolver,
      connect: (address, port) => {
        if (address === '127.0.0.1') return connect(address, port);
        silent.push(new Socket());
        return silent.at(-1)!;
      },
    });
    const url = `http://two.test:${server.port}/`;
    const outcome = await outbound.request({ url, method: 'POST' });
    expect(outcome).toMatchObject({ ok: true, remoteIp: '127.0.0.1' });
    expect(outcome.durationMs).toBeGreaterThanOrEqual(240);
    expect(dialled).toEqual(['127.0.0.1']);
    expect(silent.map((socket) => socket.destroyed)).toEqual([true]);
  });

  test('when all fail, the error of a reachable address is reported', async () => {
    const dead = await unusedPort();
    const { resolver } = tableResolver({ 'two.test': ['127.0.0.9', '127.0.0.1'] });
    const outbound = openOutbound({
      guard: loopbackGuard('two.test'),
      resolver,
      connect: (address, port) => {
        if (address === '127.0.0.1') return new Socket().connect(port, address);
        const socket = new Socket();
        const error = Object.assign(new Error('no route'), { code: 'ENETUNREACH' });
        setImmediate(() => socket.destroy(error));
        return socket;
      },
    });
    const outcome = await outbound.request({ url: `http://two.test:${dead}/`, method: 'POST' });
    expect(outcome).toMatchObject({ errorType: 'CONNECTION_REFUSED', remoteIp: '127.0.0.1' });
  });
});

describe('aborts', () => {
  test('a signal aborts a request in any phase', async () => {
    const server = await startHttp((_, response) => void response.writeHead(200).write('x'));
    const resolver = (host: string) =>
      host === 'slow.test' ? never() : Promise.resolve(['127.0.0.1']);
    const outbound = openOutbound({
      guard: loopbackGuard('*.test'),
      resolver,
      limits: { connectionsPerPool: 1 },
    });
    const abort = new RequestAbort();
    const reading = {
      url: `http://a.test:${server.port}/`,
      method: 'POST' as const,
      signal: abort,
    };
    const outcomes = Promise.all([
      outbound.request({ url: 'http://slow.test/', method: 'POST', signal: abort }),
      outbound.request(reading),
      outbound.request(reading),
    ]);
    await expect.poll(() => server.connections).toBe(1);
    abort.abort();
    for (const outcome of await outcomes) {
      expect(outcome).toMatchObject({ ok: false, errorType: 'ABORTED' });
    }
    await expect.poll(() => server.open.size).toBe(0);
    expect(await outbound.request(reading)).toMatchObject({ errorType: 'ABORTED' });
    expect(server.connections).toBe(1);
  });

  test('a request made right after an abort is not aborted with it', async () => {
    const server = await startHttp((_, response) => response.end());
    let isSlow = true;
    const connect = (address: string, port: number) =>
      isSlow ? new Socket() : new Socket().connect(port, address);
    const limits = { connectionsPerPool: 1 };
    const outbound = openOutbound({ guard: loopbackGuard(), connect, limits });
    const abort = new RequestAbort();
    const url = `http://127.0.0.1:${server.port}/`;
    const first = outbound.request({ url, method: 'POST', signal: abort });
    await new Promise((resolve) => setImmediate(resolve));
    isSlow = false;
    abort.abort();
    const second = outbound.request({ url, method: 'POST' });
    expect(await first).toMatchObject({ errorType: 'ABORTED' });
    expect(await second).toMatchObject({ ok: true });
  });

  test('a signal aborts only its own requests', async () => {
    const server = await startHttp((_, response) => void setTimeout(() => response.end(), 100));
    const outbound = openOutbound({ guard: loopbackGuard() });
    const url = `http://127.0.0.1:${server.port}/`;
    const abort = new RequestAbort();
    const [mine, other] = [
      outbound.request({ url, method: 'POST', signal: abort }),
      outbound.request({ url, method: 'POST' }),
    ];
    abort.abort();
    expect(await mine).toMatchObject({ errorType: 'ABORTED' });
    expect(await other).toMatchObject({ ok: true });
  });

  test('close aborts requests in flight and rejects new ones', async () => {
    const server = await startHttp(() => undefined);
    const outbound = openOutbound({ guard: loopbackGuard() });
    const url = `http://127.0.0.1:${server.port}/`;
    const pending = outbound.request({ url, method: 'POST' });
    await expect.poll(() => server.connections).toBe(1);
    await outbound.close();
    expect(await pending).toMatchObject({ errorType: 'ABORTED' });
    expect(await outbound.request({ url, method: 'POST' })).toMatchObject({ errorType: 'ABORTED' });
    await expect.poll(() => server.open.size).toBe(0);
  });
});
